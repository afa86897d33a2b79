# Writes numbered lines, 0, 1, 2, …, to the virtio console all the time, four in flight; as stream.S does to the serial port.
    .include "guest.s"
    .include "virtio.s"

    .set LINES, 4

main:
    mov $CONSOLE, %r14d
    call virtio_begin
    xor %esi, %esi
    call virtio_queue
    mov $1, %esi
    call virtio_queue
    call virtio_run
    # Room for input, which nobody sends: it is in flight all the same.
    xor %ebx, %ebx
    mov $BUFFERS + 0x1000, %eax
    DESCRIBE 0, %rbx, %rax, 64, WRITE
    OFFER 0, %bx
    xor %r12d, %r12d            # lines that are written
    xor %r13d, %r13d            # lines that are under way or written
1:  mov %r13, %rbx
    call send
    cmp $LINES, %r13
    jb 1b
again:
    pause
    IS_USED 1, %r12w
    je again
    TAKE 1, %r12, %ebx, %ecx
    mov %rbx, %rax
    cmp $LINES, %ebx
    jae unknown
    cmpb $1, sent(%rbx)
    jne unknown
    inc %r12
    call send
    jmp again
unknown:
    FAIL "a line came back that was not sent"

# The next number, in buffer %rbx.
send:
    mov %rbx, %rdi
    shl $5, %rdi
    add $BUFFERS, %rdi
    DESCRIBE 1, %rbx, %rdi, 17, 0
    mov %r13, %rcx
    mov $16, %r8d
1:  rol $4, %rcx
    mov %cl, %al
    and $15, %al
    add $'0', %al
    cmp $'9', %al
    jbe 2f
    add $('a' - '9' - 1), %al
2:  stosb
    dec %r8d
    jnz 1b
    mov $'\n', %al
    stosb
    movb $1, sent(%rbx)
    OFFER 1, %bx
    inc %r13
    ret

    .bss
sent: .skip LINES
    .text
