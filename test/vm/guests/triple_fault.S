# Has a fault, a fault in that, and a fault in that: the CPU gives up (Intel SDM volume 3, "triple fault").
    .include "guest.s"

main:
    SAY "now\n"
    lidt nothing(%rip)
    ud2

    .section .rodata
nothing:
    .word 0
    .quad 0
