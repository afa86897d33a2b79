# Writes rubbish at every device: takes four characters as its seed, then for ever: sets up all queues of all devices over
# memory full of random bytes, starts them and tells them to go, then makes 300 random accesses to device registers and I/O
# ports. A dot for each turn. Only the reset port is left out.
    .include "guest.s"
    .include "virtio.s"

    .set HEAP, 0x400000         # queues and what they point to: 1 MiB
    .set DEVICES, 8             # the last of them are not there

main:
    xor %r15d, %r15d
    mov $4, %ebx
1:  call getc
    shl $8, %r15
    or %al, %r15b
    dec %ebx
    jnz 1b
    mov $0x9e3779b97f4a7c15, %rax
    xor %rax, %r15
turn:
    # Fills the heap; of each 8 random bytes the upper 4 are often few, so that they make likely lengths and addresses.
    mov $HEAP, %edi
1:  call random
    test $3, %al
    jz 2f
    mov %rax, %rcx
    and $0xfffff, %ecx
    add $HEAP, %rcx             # an address in the heap
    test $8, %al
    jz 3f
    shr $44, %rax
    mov $0x0003000000000000, %rcx
    and %rcx, %rax              # flags
    or $0x40, %rax              # a length
    mov %rax, %rcx
3:  mov %rcx, %rax
2:  mov %rax, (%rdi)
    add $8, %edi
    cmp $(HEAP + 0x20000), %edi
    jb 1b

    mov $RNG, %r14d
device:
    movl $0, 0x70(%r14)
    movl $3, 0x70(%r14)
    call random
    movl $0, 0x24(%r14)
    mov %eax, 0x20(%r14)
    movl $1, 0x24(%r14)
    movl $1, 0x20(%r14)
    movl $0xb, 0x70(%r14)
    xor %esi, %esi
1:  mov %esi, 0x30(%r14)
    call random
    and $15, %eax
    mov %eax, %ecx
    mov $1, %eax
    shl %cl, %eax
    mov %eax, 0x38(%r14)
    .irp register, 0x80, 0x90, 0xa0
    call random
    and $0x1fff0, %eax
    add $HEAP, %eax
    mov %eax, \register(%r14)
    movl $0, \register + 4(%r14)
    .endr
    movl $1, 0x44(%r14)
    inc %esi
    cmp $4, %esi
    jb 1b
    movl $0xf, 0x70(%r14)
    .irp queue, 0, 1, 2, 3
    movl $\queue, 0x50(%r14)
    .endr
    add $0x1000, %r14
    cmp $(RNG + DEVICES * 0x1000), %r14d
    jb device

    mov $300, %ebx
1:  call random
    mov %rax, %rdi
    shr $16, %rdi
    mov %edi, %ecx
    and $(DEVICES * 0x1000 - 1), %edi
    test $7, %al
    jz 2f
    and $~0xe03, %edi           # often a register that is there
2:  mov $RNG, %edx
    add %rdx, %rdi
    shr $8, %ecx
    and $7, %eax
    call random_access
    dec %ebx
    jnz 1b
    mov $'.', %al
    call putc
    jmp turn

# Access %eax (0 to 7) at %rdi.
random_access:
    cmp $1, %eax
    jb read4
    je read1
    cmp $3, %eax
    jb write1
    je write8
    cmp $5, %eax
    jb write2
    je port
    call random
    and $3, %eax                # small numbers are selectors, states and the like
    mov %eax, (%rdi)
    ret
read4:
    mov (%rdi), %eax
    ret
read1:
    mov (%rdi), %al
    ret
write1:
    call random
    mov %al, (%rdi)
    ret
write2:
    call random
    mov %ax, (%rdi)
    ret
write8:
    call random
    mov %rax, (%rdi)
    ret
port:
    call random
    mov %eax, %edx
    shr $8, %eax
    test $0x10000000, %eax
    jz 1f
    and $7, %edx
    add $SERIAL, %edx
1:  cmp $SERIAL + 0, %dx        # what it writes there would be taken for its dots
    je 2f
    cmp $0x64, %dx
    je 2f
    out %al, %dx
    in %dx, %ax
2:  ret

# xorshift64 (Marsaglia 2003): %rax.
random:
    mov %r15, %rax
    shl $13, %rax
    xor %rax, %r15
    mov %r15, %rax
    shr $7, %rax
    xor %rax, %r15
    mov %r15, %rax
    shl $17, %rax
    xor %rax, %r15
    mov %r15, %rax
    ret
