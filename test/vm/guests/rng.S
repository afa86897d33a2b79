# Asks the virtio entropy device all the time, eight requests in flight. Each must be answered exactly once, with bytes in it.
# Every 32 answers a line: how many, and eight of the random bytes.
    .include "guest.s"
    .include "virtio.s"

    .set REQUESTS, 8

main:
    mov $RNG, %r14d
    call virtio_begin
    xor %esi, %esi
    call virtio_queue
    call virtio_run
    xor %ebx, %ebx
1:  mov %rbx, %rax
    shl $6, %rax
    add $BUFFERS, %rax
    DESCRIBE 0, %rbx, %rax, 64, WRITE
    movb $1, asked(%rbx)
    OFFER 0, %bx
    inc %ebx
    cmp $REQUESTS, %ebx
    jb 1b
    xor %r12d, %r12d
again:
    pause
    IS_USED 0, %r12w
    je again
    mov QUEUES + USED + 2, %ax
    sub %r12w, %ax
    movzwl %ax, %eax
    cmp $REQUESTS, %eax
    ja too_many
    TAKE 0, %r12, %ebx, %ecx
    mov %rbx, %rax
    cmp $REQUESTS, %ebx
    jae unknown
    cmpb $1, asked(%rbx)
    jne unknown
    movb $0, asked(%rbx)
    mov %rcx, %rax
    cmp $64, %ecx
    jne short
    inc %r12
    mov %rbx, %rdi
    shl $6, %rdi
    add $BUFFERS, %rdi
    mov (%rdi), %r13
    test %r13, %r13
    jz empty
    movq $0, (%rdi)
    movb $1, asked(%rbx)
    OFFER 0, %bx
    test $31, %r12d
    jnz again
    mov %r12, %rax
    call putfield
    mov %r13, %rax
    call putline
    jmp again
too_many:
    FAIL "more answers than requests"
unknown:
    FAIL "an answer to what was not asked"
short:
    FAIL "an answer of another length"
empty:
    mov %r12, %rax
    FAIL "an answer without random bytes"

    .bss
asked: .skip REQUESTS
    .text
