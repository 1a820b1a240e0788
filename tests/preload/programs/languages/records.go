// SPDX-License-Identifier: Apache-2.0
// Writes 5,000 records of 100 bytes, reads them back through a second descriptor, and ends with code 3.
package main

import (
	"fmt"
	"hash/crc32"
	"os"
)

func main() {
	file, _ := os.Create("records")
	for i := 0; i < 5000; i++ {
		fmt.Fprintf(file, "%99d\n", i)
	}
	again, _ := os.Open("records")
	sum := crc32.NewIEEE()
	record := make([]byte, 100)
	for {
		got, _ := again.Read(record)
		if got == 0 {
			break
		}
		sum.Write(record[:got])
	}
	status, _ := os.Stat("records")
	fmt.Println(sum.Sum32(), status.Size())
	again.Close()
	file.Close()
	os.Exit(3)
}
