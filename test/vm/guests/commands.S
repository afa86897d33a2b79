# Does what characters on the serial port tell, and sleeps between them (woken by the port's interrupt), so that a machine
# and its forks can be made to do different things:
#   w c   writes the character c into a page of its own
#   r     says which character is there
#   t     writes into each page of 64 MiB, from 64 MiB on
#   s     sums those 64 MiB (the first byte of each page) and says it: 0 if they were never written
#   p     says "pong"
# Each is answered with a line.
    .include "guest.s"
    .include "apic.s"

    .set PLACE, 0x2000000
    .set BIG, 0x4000000
    .set BIG_SIZE, 0x4000000

main:
    mov $(PIC_VECTOR + 4), %edi
    lea on_serial(%rip), %rsi
    call set_gate
    call apic_on
    mov $0xef, %bl
    call pic_on
    mov $SERIAL + 1, %dx
    mov $1, %al                 # interrupt when a character has come
    out %al, %dx
    mov $SERIAL + 4, %dx
    mov $8, %al                 # OUT2 lets the port's interrupts through
    out %al, %dx
    movb $'-', PLACE
    SAY "ready\n"
next:
    call wait_character
    cmp $'w', %al
    je write
    cmp $'r', %al
    je read
    cmp $'t', %al
    je touch
    cmp $'s', %al
    je sum
    cmp $'p', %al
    jne next
    SAY "pong\n"
    jmp next
write:
    call wait_character
    mov %al, PLACE
    SAY "written\n"
    jmp next
read:
    mov PLACE, %al
    call putc
    mov $'\n', %al
    call putc
    jmp next
touch:
    mov $BIG, %edi
1:  movb $1, (%rdi)
    add $4096, %edi
    cmp $(BIG + BIG_SIZE), %edi
    jb 1b
    SAY "touched\n"
    jmp next
sum:
    mov $BIG, %edi
    xor %eax, %eax
1:  movzbl (%rdi), %ecx
    add %ecx, %eax
    add $4096, %edi
    cmp $(BIG + BIG_SIZE), %edi
    jb 1b
    call putline
    jmp next

# Sleeps until a character has come.
wait_character:
    cli
    call trygetc
    jnz 1f
    sti
    hlt
    jmp wait_character
1:  sti
    ret

on_serial:
    push %rax
    push %rdx
    mov $SERIAL + 2, %dx        # which interrupt: reading it is how a driver begins
    in %dx, %al
    TELL 0x20, 0x20
    pop %rdx
    pop %rax
    iretq
