# Sleeps (hlt) and is woken by timers: the timer chip (PIT) 50 times per second always, and the local APIC's timer as it is
# told by a character: p periodic, o one shot that its handler starts again, d TSC deadline that its handler sets again (if
# the CPU has it; says "none" if not), n none. At each tick of the PIT a line: its count, the APIC timer's.
    .include "guest.s"
    .include "apic.s"

    .set PERIOD, 20000000       # of the APIC timer, which counts nanoseconds in KVM
    .set DEADLINE, 20000000     # cycles of the TSC
    .set TIMER_VECTOR, 0x40

main:
    mov $PIC_VECTOR, %edi
    lea on_pit(%rip), %rsi
    call set_gate
    mov $TIMER_VECTOR, %edi
    lea on_apic(%rip), %rsi
    call set_gate
    call apic_on
    mov $0xfe, %bl
    call pic_on
    PIT_PERIODIC 50
sleep:
    sti
    hlt
    cli
    mov pit(%rip), %rax
    cmp told(%rip), %rax
    je sleep
    mov %rax, told(%rip)
    call putfield
    mov apic(%rip), %rax
    call putline
    call trygetc
    jz sleep
    cmp $'p', %al
    je periodic
    cmp $'o', %al
    je one_shot
    cmp $'d', %al
    je deadline
    APIC LAPIC_TIMER, 0x10000
    movb $0, mode(%rip)
    jmp sleep

periodic:
    mov %al, mode(%rip)
    APIC LAPIC_TIMER, 0x20000 + TIMER_VECTOR
    APIC LAPIC_COUNT, PERIOD
    jmp sleep
one_shot:
    mov %al, mode(%rip)
    APIC LAPIC_TIMER, TIMER_VECTOR
    APIC LAPIC_COUNT, PERIOD
    jmp sleep
deadline:
    mov %al, mode(%rip)
    mov $1, %eax
    cpuid
    test $0x1000000, %ecx
    jz 1f
    APIC LAPIC_TIMER, 0x40000 + TIMER_VECTOR
    call set_deadline
    jmp sleep
1:  SAY "none\n"
    movb $0, mode(%rip)
    jmp sleep

set_deadline:
    rdtsc
    add $DEADLINE, %eax
    adc $0, %edx
    mov $0x6e0, %ecx
    wrmsr
    ret

on_pit:
    push %rax
    incq pit(%rip)
    TELL 0x20, 0x20
    pop %rax
    iretq

on_apic:
    push %rax
    push %rcx
    push %rdx
    push %r11
    incq apic(%rip)
    cmpb $'o', mode(%rip)
    jne 1f
    APIC LAPIC_COUNT, PERIOD
1:  cmpb $'d', mode(%rip)
    jne 2f
    call set_deadline
2:  APIC LAPIC_EOI, 0
    pop %r11
    pop %rdx
    pop %rcx
    pop %rax
    iretq

    .bss
    .align 8
pit: .skip 8
apic: .skip 8
told: .skip 8
mode: .skip 8
    .text
