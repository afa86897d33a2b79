# Writes numbered lines to the serial port all the time: 0, 1, 2, … as 16 digits each. What a machine and its forks have
# written must be this sequence and nothing else, whatever byte a fork falls into.
    .include "guest.s"

main:
    xor %ebx, %ebx
1:  mov %rbx, %rax
    call putline
    inc %rbx
    jmp 1b
