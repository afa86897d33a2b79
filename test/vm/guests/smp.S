# Four CPUs, the others started by INIT and SIPI (Intel MultiProcessor Specification 1.4, appendix B.4): 1 sleeps until CPU 0
# wakes it; 2 (which spins) and 3 (which sleeps) send each other an interrupt for each that they get. CPU 0 writes a line for
# each round in which 1 has woken and the two have gone on by at least 10: rounds, interrupts so far. An interrupt that a
# fork lost stops the lines.
    .include "guest.s"
    .include "apic.s"

    .set TRAMPOLINE, 0x8000
    .set WAKE, 0x60
    .set PING, 0x61
    .set PONG, 0x62

# A fixed interrupt \vector to the CPU with APIC id \to. Changes r11.
    .macro SEND to, vector
    APIC LAPIC_COMMAND_TO, \to << 24
    APIC LAPIC_COMMAND, \vector
    .endm

main:
    .irp pair, WAKE, PING, PONG
    mov $\pair, %edi
    lea on_\pair(%rip), %rsi
    call set_gate
    .endr
    call apic_on
    lea trampoline(%rip), %rsi
    mov $TRAMPOLINE, %edi
    mov $(trampoline_end - trampoline), %ecx
    rep movsb
    APIC LAPIC_COMMAND, 0xc4500 # INIT to all others
    APIC LAPIC_COMMAND, 0xc4600 + (TRAMPOLINE >> 12)
1:  pause
    cmpl $3, awake(%rip)
    jb 1b
    SAY "started\n"
    SEND 2, PING
round:
    inc %r12
    SEND 1, WAKE
1:  pause
    cmp %r12, woken(%rip)
    jb 1b
    ja twice
    mov %r13, %rax
    add $10, %rax
1:  pause
    cmp %rax, pongs(%rip)
    jb 1b
    mov pongs(%rip), %r13
    # Each ping is answered by one pong: they are never more than one apart.
    mov pings(%rip), %rax
    sub %r13, %rax
    cmp $-1, %rax
    jl uneven
    mov %r12, %rax
    call putfield
    mov %r13, %rax
    call putline
    jmp round
twice:
    FAIL "the sleeping CPU was woken twice"
uneven:
    FAIL "more answers than questions"

on_WAKE:
    incq woken(%rip)
    END_OF_INTERRUPT
    iretq
on_PING:
    push %r11
    incq pings(%rip)
    APIC LAPIC_EOI, 0
    SEND 3, PONG
    pop %r11
    iretq
on_PONG:
    push %r11
    incq pongs(%rip)
    APIC LAPIC_EOI, 0
    SEND 2, PING
    pop %r11
    iretq

    .code16
trampoline:
    cli
    xor %ax, %ax
    mov %ax, %ds
    lgdtl TRAMPOLINE + trampoline_gdt - trampoline
    mov %cr0, %eax
    or $1, %eax
    mov %eax, %cr0
    ljmpl $CODE32, $other32
trampoline_gdt:
    .word gdt_end - gdt - 1
    .long gdt
trampoline_end:

    .code32
other32:
    mov $DATA0, %eax
    mov %eax, %ds
    mov %eax, %es
    mov %eax, %ss
    ENTER_LONG other64
    .code64
other64:
    mov $DATA0, %eax
    mov %eax, %ss
    mov $LAPIC_ID, %r11d
    mov (%r11), %ebx
    shr $24, %ebx
    mov %ebx, %eax
    shl $12, %eax
    lea stacks(%rip), %rsp      # CPU 0 has one already, so the first is left out
    add %rax, %rsp
    lidt idt_pointer(%rip)
    APIC LAPIC_SPURIOUS, 0x1ff
    lock incl awake(%rip)
    sti
    cmp $2, %ebx
    je 2f
1:  hlt
    jmp 1b
2:  pause
    jmp 2b

    .bss
    .align 4096
stacks: .skip 4 * 4096
    .align 64
woken: .skip 64
pings: .skip 64
pongs: .skip 64
awake: .skip 64
    .text
