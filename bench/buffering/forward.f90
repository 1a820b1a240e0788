! SPDX-License-Identifier: Apache-2.0
! Writes what backward.f90 reads: forward FILE BYTES RECORDS
program forward
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
  record = 7
  open (unit=21, file=trim(file), form='unformatted', access='direct', recl=bytes, status='replace')
  do n = 1, records
    record(1) = n
    write (21, rec=n) record
  end do
  close (21)
end program forward
