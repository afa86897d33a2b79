# The driver's side of virtio-mmio (VIRTIO 1.2, sections 2.7 and 4.2), polled: one page for each queue of 16. Behind guest.s.

    .set RNG, 0xd0000000        # the devices' places: docs/devices.md
    .set CONSOLE, RNG + 0x1000
    .set VSOCK, RNG + 0x2000
    .set FILES, RNG + 0x3000

    .set ENTRIES, 16
    .set AVAILABLE, 0x400       # in a queue's page, behind the descriptors
    .set USED, 0x800
    .set QUEUES, RAM            # queue i's page: QUEUES + i * 0x1000
    .set BUFFERS, RAM + 0x100000

    .set NEXT, 1                # descriptor flags
    .set WRITE, 2

    .text
# Resets the device at %r14 and agrees on VIRTIO_F_VERSION_1 and nothing else.
virtio_begin:
    cmpl $0x74726976, (%r14)
    mov $0, %eax
    jne virtio_missing
    movl $0, 0x70(%r14)
    movl $1, 0x70(%r14)
    movl $3, 0x70(%r14)
    movl $0, 0x24(%r14)
    movl $0, 0x20(%r14)
    movl $1, 0x24(%r14)
    movl $1, 0x20(%r14)
    movl $0xb, 0x70(%r14)
    mov 0x70(%r14), %eax
    test $8, %eax
    jz virtio_missing
    ret
virtio_missing:
    FAIL "no such virtio device"

# Sets up queue %esi. Changes rdx.
virtio_queue:
    mov %esi, 0x30(%r14)
    movl $ENTRIES, 0x38(%r14)
    mov %rsi, %rdx
    shl $12, %rdx
    add $QUEUES, %rdx
    mov %edx, 0x80(%r14)
    movl $0, 0x84(%r14)
    add $AVAILABLE, %edx
    mov %edx, 0x90(%r14)
    movl $0, 0x94(%r14)
    add $(USED - AVAILABLE), %edx
    mov %edx, 0xa0(%r14)
    movl $0, 0xa4(%r14)
    movl $1, 0x44(%r14)
    ret

virtio_run:
    movl $0xf, 0x70(%r14)
    ret

# Descriptor \index (a register) of queue \queue: \length bytes at \address (a register). Changes rdx.
    .macro DESCRIBE queue, index, address, length, flags, next=0
    mov \index, %rdx
    shl $4, %rdx
    mov \address, QUEUES + \queue * 0x1000(%rdx)
    movl $\length, QUEUES + \queue * 0x1000 + 8(%rdx)
    movw $\flags, QUEUES + \queue * 0x1000 + 12(%rdx)
    movw $\next, QUEUES + \queue * 0x1000 + 14(%rdx)
    .endm

# Makes descriptor \index (16 bits) of queue \queue the next available one. Changes rdx, and notifies.
    .macro OFFER queue, index
    movzwl QUEUES + \queue * 0x1000 + AVAILABLE + 2, %edx
    and $(ENTRIES - 1), %edx
    mov \index, QUEUES + \queue * 0x1000 + AVAILABLE + 4(,%rdx,2)
    mfence
    incw QUEUES + \queue * 0x1000 + AVAILABLE + 2
    mfence
    movl $\queue, 0x50(%r14)
    .endm

# ZF clear if queue \queue has used more than \seen (16 bits).
    .macro IS_USED queue, seen
    cmp QUEUES + \queue * 0x1000 + USED + 2, \seen
    .endm

# The used entry number \seen (64 bits) of queue \queue: descriptor in \index, bytes in \length (32 bits each). Changes rdx.
    .macro TAKE queue, seen, index, length
    mov \seen, %rdx
    and $(ENTRIES - 1), %edx
    mov QUEUES + \queue * 0x1000 + USED + 4(,%rdx,8), \index
    mov QUEUES + \queue * 0x1000 + USED + 8(,%rdx,8), \length
    .endm
