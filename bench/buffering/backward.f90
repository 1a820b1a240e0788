! SPDX-License-Identifier: Apache-2.0
! Direct access from the last record to the first: backward FILE BYTES RECORDS. The record holds its number first.
program backward
  implicit none
  integer :: bytes, records, n
  character(len=4096) :: file, word
  integer, allocatable :: record(:)
  call get_command_argument(1, file)
  call get_command_argument(2, word)
  read (word, *) bytes
  call get_command_argument(3, word)
  read (word, *) records
  allocate (record(bytes/4))
  open (unit=21, file=trim(file), form='unformatted', access='direct', recl=bytes, status='old')
  do n = records, 1, -1
    read (21, rec=n) record
    if (record(1) /= n) stop 1
  end do
  close (21)
end program backward
