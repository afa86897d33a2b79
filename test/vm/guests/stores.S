# Stores all the time and looks at once whether a store was lost or done twice: the count of stores is in a register, in one
# place of memory, and in a ring of 256 places, each in a page of its own, where each must hold what was stored a lap
# before. Every ROUND stores it writes the count as a line.
    .include "guest.s"

    .set ROUND, 8192
    .set PLACES, 256

main:
    xor %ebx, %ebx
    mov $ROUND, %ecx
again:
    inc %rbx
    mov count(%rip), %rax
    inc %rax
    cmp %rbx, %rax
    jne unequal
    mov %rbx, %rdx
    and $(PLACES - 1), %edx
    shl $12, %rdx
    add $RAM, %rdx
    mov %rbx, %rax
    sub $PLACES, %rax
    cmovb zero(%rip), %rax
    cmp %rax, (%rdx)
    jne not_a_lap
    mov %rbx, (%rdx)
    mov %rbx, count(%rip)
    dec %ecx
    jnz again
    mov %rbx, %rax
    call putline
    mov $ROUND, %ecx
    jmp again

unequal:
    FAIL "the count in memory is not the count in the register"
not_a_lap:
    mov (%rdx), %rax
    FAIL "a place in the ring does not hold what was stored a lap before"

    .section .rodata
zero: .quad 0
    .bss
    .align 4096
count: .skip 8
