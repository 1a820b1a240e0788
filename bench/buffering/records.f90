! SPDX-License-Identifier: Apache-2.0
! Unformatted sequential records of 10,001 integers, as codes of the Cray X1 wrote them: records FILE THOUSANDS
program records
  implicit none
  integer :: a(10000), n, i, thousands
  character(len=4096) :: file, word
  call get_command_argument(1, file)
  call get_command_argument(2, word)
  read (word, *) thousands
  a = 7
  open (unit=21, file=trim(file), form='unformatted', status='replace')
  do i = 1, thousands
    do n = 1, 1000
      write (21) n, a
    end do
  end do
  close (21)
end program records
