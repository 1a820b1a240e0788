// SPDX-License-Identifier: Apache-2.0
// Writes 5,000 records of 100 bytes, reads them back, first at once and then in threads of the runtime; code 3.
const fs = require("fs");
const file = fs.openSync("records", "w+");
for (let i = 0; i < 5000; i++) {
  fs.writeSync(file, String(i).padStart(99) + "\n");
}
let sum = 0;
const record = Buffer.alloc(100);
for (let i = 0; i < 5000; i++) {
  fs.readSync(file, record, 0, 100, i * 100);
  for (const byte of record) {
    sum = (sum * 31 + byte) >>> 0;
  }
}
fs.closeSync(file);
const stream = fs.createReadStream("records", { highWaterMark: 100 });
let bytes = 0;
stream.on("data", (part) => {
  bytes += part.length;
});
stream.on("end", () => {
  console.log(sum, bytes, fs.statSync("records").size);
  process.exitCode = 3;
});
