// SPDX-License-Identifier: Apache-2.0
// Writes 5,000 records of 100 bytes, reads them back through a second descriptor, and ends with code 3.
use std::fs::File;
use std::io::{Read, Write};

fn main() {
    let mut file = File::create("records").unwrap();
    for i in 0..5000 {
        file.write_all(format!("{:99}\n", i).as_bytes()).unwrap();
    }
    let mut again = File::open("records").unwrap();
    let mut sum: u64 = 0;
    let mut record = [0u8; 100];
    loop {
        let got = again.read(&mut record).unwrap();
        if got == 0 {
            break;
        }
        for byte in &record[..got] {
            sum = sum.wrapping_mul(31).wrapping_add(u64::from(*byte));
        }
    }
    println!("{} {}", sum, std::fs::metadata("records").unwrap().len());
    std::process::exit(3);
}
