# Sends requests to the virtio file system all the time (FUSE_INIT, then FUSE_GETATTR of the root; linux/fuse.h), four in
# flight. Each must be answered exactly once, with its own number. Every 16 answers a line: how many.
    .include "guest.s"
    .include "virtio.s"

    .set REQUESTS, 4
    .set QUEUE, 1

main:
    mov $FILES, %r14d
    call virtio_begin
    xor %esi, %esi
    call virtio_queue
    mov $QUEUE, %esi
    call virtio_queue
    call virtio_run
    xor %r12d, %r12d            # answers
    mov $2, %r13d               # the next request's number: even ones, as Linux has them

    # FUSE_INIT alone.
    mov $BUFFERS, %edi
    movl $104, (%rdi)
    movl $26, 4(%rdi)
    mov %r13, 8(%rdi)
    movl $7, 40(%rdi)
    movl $38, 44(%rdi)
    mov $104, %r8d
    xor %ebx, %ebx
    call send
1:  pause
    IS_USED QUEUE, %r12w
    je 1b
    call take

    xor %ebx, %ebx
1:  call get_attributes
    inc %ebx
    cmp $REQUESTS, %ebx
    jb 1b
again:
    pause
    IS_USED QUEUE, %r12w
    je again
    call take
    call get_attributes
    test $15, %r12d
    jnz again
    mov %r12, %rax
    call putline
    jmp again

# A request in slot %rbx.
get_attributes:
    mov %rbx, %rdi
    shl $8, %rdi
    add $BUFFERS, %rdi
    movl $56, (%rdi)
    movl $3, 4(%rdi)
    mov %r13, 8(%rdi)
    movq $1, 16(%rdi)           # the root
    movq $0, 40(%rdi)
    movq $0, 48(%rdi)
    mov $56, %r8d

# What is at %rdi, %r8 bytes, in slot %rbx: descriptors 2 * rbx (request) and 2 * rbx + 1 (answer).
send:
    mov %r13, asked(,%rbx,8)
    add $2, %r13
    lea (%rbx,%rbx), %rcx
    DESCRIBE QUEUE, %rcx, %rdi, 0, NEXT
    mov %r8d, QUEUES + QUEUE * 0x1000 + 8(%rdx)
    lea 1(%rcx), %r9
    mov %r9w, QUEUES + QUEUE * 0x1000 + 14(%rdx)
    lea 128(%rdi), %rax
    movq $0, 8(%rax)
    DESCRIBE QUEUE, %r9, %rax, 128, WRITE
    OFFER QUEUE, %cx
    ret

# The next answer: its slot in %rbx.
take:
    TAKE QUEUE, %r12, %ebx, %ecx
    inc %r12
    mov %rbx, %rax
    test $1, %bl
    jnz unknown
    shr $1, %ebx
    cmp $REQUESTS, %ebx
    jae unknown
    mov %rbx, %rdi
    shl $8, %rdi
    mov BUFFERS + 128 + 8(%rdi), %rax
    test %rax, %rax
    jz unanswered
    cmp asked(,%rbx,8), %rax
    jne other
    movq $0, asked(,%rbx,8)
    ret
unknown:
    FAIL "an answer to what was not asked"
unanswered:
    FAIL "an answer without a number"
other:
    FAIL "an answer with another number than its request"

    .bss
    .align 8
asked: .skip 8 * REQUESTS
    .text
