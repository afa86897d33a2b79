# Interrupts: the local APIC (Intel SDM volume 3, chapter "APIC"), the old PICs and the timer chip. Behind guest.s.

    .set LAPIC, 0xfee00000
    .set LAPIC_ID, LAPIC + 0x20
    .set LAPIC_EOI, LAPIC + 0xb0
    .set LAPIC_SPURIOUS, LAPIC + 0xf0
    .set LAPIC_COMMAND, LAPIC + 0x300
    .set LAPIC_COMMAND_TO, LAPIC + 0x310
    .set LAPIC_TIMER, LAPIC + 0x320
    .set LAPIC_LINT0, LAPIC + 0x350
    .set LAPIC_COUNT, LAPIC + 0x380
    .set LAPIC_DIVIDE, LAPIC + 0x3e0

    .set PIC_VECTOR, 0x20       # of the timer; the serial port is 4 above it
    .set PIT_HZ, 1193182

# A store to an APIC register; the address does not fit into a sign-extended 32-bit displacement.
    .macro APIC register, value
    mov $\register, %r11d
    movl $\value, (%r11)
    .endm

    .macro END_OF_INTERRUPT
    push %r11
    APIC LAPIC_EOI, 0
    pop %r11
    .endm

    .text
# Turns this CPU's APIC on and lets the PICs' interrupts through it. Changes r11.
apic_on:
    APIC LAPIC_SPURIOUS, 0x1ff
    APIC LAPIC_LINT0, 0x700     # ExtINT
    APIC LAPIC_DIVIDE, 0xb      # by 1
    ret

    .macro TELL port, value
    mov $\value, %al
    out %al, $\port
    .endm

# The PICs at vectors PIC_VECTOR and up; all lines masked but those whose bits in %bl are clear.
pic_on:
    TELL 0x20, 0x11
    TELL 0x21, PIC_VECTOR
    TELL 0x21, 4
    TELL 0x21, 1
    TELL 0xa0, 0x11
    TELL 0xa1, PIC_VECTOR + 8
    TELL 0xa1, 2
    TELL 0xa1, 1
    TELL 0xa1, 0xff
    mov %bl, %al
    out %al, $0x21
    ret

# The timer chip's channel 0, periodic, \hz times per second.
    .macro PIT_PERIODIC hz
    TELL 0x43, 0x34              # channel 0, both bytes, mode 2
    TELL 0x40, (PIT_HZ / \hz) & 0xff
    TELL 0x40, (PIT_HZ / \hz) >> 8
    .endm
