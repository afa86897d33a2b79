# Has interrupts pending most of the time: with interrupts off it sends one to itself through the local APIC and lets the
# timer chip raise one in the PIC, writes a line and spins, and only then lets them in. Each must come exactly once. A line
# for each round; what is not right ends it with FAIL.
    .include "guest.s"
    .include "apic.s"

    .set SELF_VECTOR, 0x50

main:
    mov $PIC_VECTOR, %edi
    lea on_pit(%rip), %rsi
    call set_gate
    mov $SELF_VECTOR, %edi
    lea on_self(%rip), %rsi
    call set_gate
    call apic_on
    mov $0xfe, %bl
    call pic_on
round:
    cli
    inc %r12
    APIC LAPIC_COMMAND, 0x40000 + SELF_VECTOR
    # Channel 0, low byte, mode 0: one interrupt, 200 counts of 838 ns from now.
    TELL 0x43, 0x10
    TELL 0x40, 200
    # Until the PIC has it (its request register).
    TELL 0x20, 0x0a
1:  in $0x20, %al
    test $1, %al
    jz 1b
    mov %r12, %rax
    call putline
    mov $20000, %ecx
1:  dec %ecx
    jnz 1b
    mov self(%rip), %rax
    inc %rax
    cmp %r12, %rax
    jne early
    mov pit(%rip), %rax
    inc %rax
    cmp %r12, %rax
    jne early
    sti
    nop
    nop
    # Both have come when this CPU has executed a few instructions; it waits for them all the same.
    mov $100000000, %ecx
1:  dec %ecx
    jz lost
    mov self(%rip), %rax
    cmp %r12, %rax
    ja twice
    jb 1b
    mov pit(%rip), %rax
    cmp %r12, %rax
    ja twice
    jb 1b
    jmp round
early:
    FAIL "an interrupt came while interrupts were off, or not at all in a round before"
lost:
    FAIL "an interrupt did not come"
twice:
    FAIL "an interrupt came twice"

on_pit:
    push %rax
    incq pit(%rip)
    TELL 0x20, 0x20
    pop %rax
    iretq
on_self:
    incq self(%rip)
    END_OF_INTERRUPT
    iretq

    .bss
    .align 8
pit: .skip 8
self: .skip 8
    .text
