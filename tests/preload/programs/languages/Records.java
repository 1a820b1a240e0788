// SPDX-License-Identifier: Apache-2.0
// Writes 5,000 records of 100 bytes, reads them back through a second descriptor, and ends with code 3.
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.zip.CRC32;

class Records {
    public static void main(String[] arguments) throws Exception {
        FileOutputStream file = new FileOutputStream("records");
        for (int i = 0; i < 5000; i++) {
            file.write(String.format("%99d\n", i).getBytes());
        }
        CRC32 sum = new CRC32();
        byte[] record = new byte[100];
        try (FileInputStream again = new FileInputStream("records")) {
            for (int got = again.read(record); got > 0; got = again.read(record)) {
                sum.update(record, 0, got);
            }
        }
        try (RandomAccessFile random = new RandomAccessFile("records", "rw"); FileChannel channel = random.getChannel()) {
            for (int i = 0; i < 1000; i++) {
                channel.write(ByteBuffer.wrap("changed".getBytes()), i * 500L);
            }
            random.setLength(400_000);
        }
        file.close();
        System.out.println(sum.getValue() + " " + Files.size(Path.of("records")));
        System.exit(3);
    }
}
