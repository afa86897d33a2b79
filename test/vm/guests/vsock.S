# Takes vsock connections on any port and sends back what it gets (VIRTIO 1.2, section 5.10), one connection at a time for its
# credit. Says "reset" when the device tells of a transport reset, "open" and "closed" for connections.
    .include "guest.s"
    .include "virtio.s"

    .set RX, 0
    .set TX, 1
    .set EVENT, 2
    .set BUFFER, 4096
    .set RX_BUFFERS, 8
    .set TX_BUFFER, BUFFERS + 0x10000
    .set EVENT_BUFFERS, BUFFERS + 0x20000

    # struct virtio_vsock_hdr
    .set SRC_CID, 0
    .set DST_CID, 8
    .set SRC_PORT, 16
    .set DST_PORT, 20
    .set LENGTH, 24
    .set TYPE, 28
    .set OPERATION, 30
    .set FLAGS, 32
    .set ALLOCATED, 36
    .set FORWARDED, 40
    .set HEADER, 44

    .set REQUEST, 1
    .set RESPONSE, 2
    .set RST, 3
    .set SHUTDOWN, 4
    .set RW, 5
    .set CREDIT_UPDATE, 6
    .set CREDIT_REQUEST, 7

main:
    mov $VSOCK, %r14d
    call virtio_begin
    .irp queue, RX, TX, EVENT
    mov $\queue, %esi
    call virtio_queue
    .endr
    call virtio_run
    xor %ebx, %ebx
1:  mov %rbx, %rax
    shl $12, %rax
    add $BUFFERS, %rax
    DESCRIBE RX, %rbx, %rax, BUFFER, WRITE
    OFFER RX, %bx
    mov %rbx, %rax
    shl $4, %rax
    add $EVENT_BUFFERS, %rax
    DESCRIBE EVENT, %rbx, %rax, 8, WRITE
    OFFER EVENT, %bx
    inc %ebx
    cmp $RX_BUFFERS, %ebx
    jb 1b
    SAY "listening\n"
    xor %r12d, %r12d            # received
    xor %r13d, %r13d            # sent
    xor %r15d, %r15d            # events
again:
    pause
    IS_USED EVENT, %r15w
    jne event
    IS_USED RX, %r12w
    je again
    TAKE RX, %r12, %ebx, %ecx
    inc %r12
    call received
    OFFER RX, %bx
    jmp again

event:
    TAKE EVENT, %r15, %ebx, %ecx
    inc %r15
    mov %rbx, %rax
    shl $4, %rax
    mov EVENT_BUFFERS(%rax), %eax
    test %eax, %eax
    jnz 1f
    SAY "reset\n"
1:  OFFER EVENT, %bx
    jmp again

# The packet in buffer %rbx, answered.
received:
    mov %rbx, %r9
    shl $12, %r9
    add $BUFFERS, %r9
    movzwl OPERATION(%r9), %eax
    cmp $REQUEST, %eax
    je opened
    cmp $RW, %eax
    je data
    cmp $SHUTDOWN, %eax
    je closed
    cmp $RST, %eax
    je reset
    cmp $CREDIT_REQUEST, %eax
    je credit
    ret
opened:
    movl $0, taken(%rip)
    mov $RESPONSE, %r10d
    xor %r11d, %r11d
    call answer
    SAY "open\n"
    ret
closed:
    mov $RST, %r10d
    xor %r11d, %r11d
    call answer
reset:
    SAY "closed\n"
    ret
credit:
    mov $CREDIT_UPDATE, %r10d
    xor %r11d, %r11d
    jmp answer
data:
    mov LENGTH(%r9), %r11d
    add %r11d, taken(%rip)
    mov $RW, %r10d

# Sends operation %r10 with the first %r11 bytes of the packet at %r9 to where that came from, and waits until it is sent.
answer:
    lea HEADER(%r9), %rsi
    mov $TX_BUFFER + HEADER, %edi
    mov %r11, %rcx
    rep movsb
    mov $TX_BUFFER, %edi
    mov SRC_CID(%r9), %rax
    mov %rax, DST_CID(%rdi)
    mov DST_CID(%r9), %rax
    mov %rax, SRC_CID(%rdi)
    mov SRC_PORT(%r9), %eax
    mov %eax, DST_PORT(%rdi)
    mov DST_PORT(%r9), %eax
    mov %eax, SRC_PORT(%rdi)
    mov %r11d, LENGTH(%rdi)
    movw $1, TYPE(%rdi)
    mov %r10w, OPERATION(%rdi)
    movl $0, FLAGS(%rdi)
    movl $0x10000, ALLOCATED(%rdi)
    mov taken(%rip), %eax
    mov %eax, FORWARDED(%rdi)
    xor %ecx, %ecx
    mov $TX_BUFFER, %eax
    DESCRIBE TX, %rcx, %rax, 0, 0
    lea HEADER(%r11), %eax
    mov %eax, QUEUES + TX * 0x1000 + 8
    OFFER TX, %cx
1:  pause
    IS_USED TX, %r13w
    je 1b
    inc %r13
    ret

    .bss
taken: .skip 4
    .text
