! SPDX-License-Identifier: Apache-2.0
! What Fortran programs do to files: sequential, direct and stream access, forward and backward, units left open.
! Prints everything that it reads back.
program units
  implicit none
  integer :: n, position, bytes, length, status
  integer(8) :: total
  integer :: record(250)
  character(len=40) :: line
  character(len=8) :: text
  ! Unformatted sequential: write, read back, go back over records, cut off behind one.
  open (unit=11, file='sequential', form='unformatted', status='replace')
  do n = 1, 500
    record = n
    write (11) n, record(1:1 + mod(n*37, 250))
  end do
  rewind (11)
  total = 0
  do n = 1, 500
    read (11) position
    total = total + int(position, 8)*n
  end do
  print *, 'sequential', total
  do n = 1, 10
    backspace (11)
  end do
  read (11) position
  print *, 'after backspace', position
  endfile (11)
  inquire (unit=11, size=bytes)
  print *, 'size', bytes
  close (11)
  ! Direct access: records out of order, then from the last to the first.
  open (unit=12, file='direct', form='unformatted', access='direct', recl=1000, status='replace')
  do n = 1, 400
    position = mod(n*149, 400) + 1
    record = position
    write (12, rec=position) record
  end do
  total = 0
  do n = 400, 1, -1
    read (12, rec=n) record
    total = total + record(250)*int(n, 8)
  end do
  print *, 'direct', total
  read (12, rec=401, iostat=status) record
  print *, 'behind the end', status /= 0
  close (12)
  ! Stream access with positions, read and written in turns.
  open (unit=13, file='stream', form='unformatted', access='stream', status='replace')
  do n = 1, 2000
    write (13) n
  end do
  do n = 1, 2000, 7
    write (13, pos=4*(n - 1) + 1) - n
  end do
  total = 0
  do n = 2000, 1, -3
    read (13, pos=4*(n - 1) + 1) position
    total = total + position
  end do
  inquire (unit=13, pos=position)
  print *, 'stream', total, position
  close (13)
  ! Formatted, appended to after it was closed.
  open (unit=14, file='formatted', form='formatted', status='replace')
  do n = 1, 1000
    write (14, '(a, i6, f12.4)') 'line', n, real(n)/3
  end do
  close (14)
  open (unit=14, file='formatted', form='formatted', position='append', status='old')
  write (14, '(a)') 'the end'
  rewind (14)
  do n = 1, 1001
    read (14, '(a)') line
  end do
  print *, trim(line)
  close (14)
  ! A scratch file, and units that nobody closes.
  open (newunit=n, form='unformatted', status='scratch')
  write (n) record
  rewind (n)
  read (n) length
  print *, 'scratch', length
  open (unit=15, file='left-open', form='formatted', status='replace')
  do position = 1, 3000
    write (text, '(i8)') position
    write (15, '(a)') text
  end do
  open (unit=16, file='left-open-too', form='unformatted', access='direct', recl=8, status='replace')
  do position = 1, 300
    write (16, rec=position) int(position, 8)
  end do
end program units
