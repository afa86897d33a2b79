# What every guest here begins with: entered by PVH (32-bit protected mode, paging off), it goes to 64-bit mode with all of
# the first 4 GiB mapped one to one and calls `main`. Below it: the serial port, interrupt gates, ring 3, giving up.
# Source: Xen's "x86/HVM direct boot ABI"; Intel SDM volume 3; the 8250's registers as in any PC.
#
# Functions keep all registers but rax and those that they are said to change.

    .set CODE0, 0x08            # selectors of the GDT below
    .set DATA0, 0x10
    .set CODE3, 0x18 + 3
    .set DATA3, 0x20 + 3
    .set TSS, 0x28
    .set CODE32, 0x38

    .set SERIAL, 0x3f8
    .set LINE_STATUS, SERIAL + 5

    .set RAM, 0x1000000         # from here on (16 MiB) RAM is the guest's own to play with

    .section .note.pvh, "a", @note
    .align 4
    .long 4, 8, 18              # XEN_ELFNOTE_PHYS32_ENTRY
    .asciz "Xen"
    .quad start32

# From 32-bit mode without paging to 64-bit code at \target; needs cr3's tables and the GDT.
    .macro ENTER_LONG target
    mov $pml4, %eax
    mov %eax, %cr3
    mov %cr4, %eax
    or $0x620, %eax             # PAE, OSFXSR, OSXMMEXCPT
    mov %eax, %cr4
    mov $0xc0000080, %ecx       # EFER.LME
    rdmsr
    or $0x100, %eax
    wrmsr
    mov %cr0, %eax
    and $~0x4, %eax             # EM
    or $0x80000022, %eax        # PG, NE, MP
    mov %eax, %cr0
    ljmp $CODE0, $\target
    .endm

    .text
    .code32
    .globl start32
start32:
    cli
    cld
    mov %ebx, start_info
    mov $boot_stack_top, %esp
    lgdt gdt_pointer
    ENTER_LONG start64

    .code64
start64:
    mov $DATA0, %eax
    mov %eax, %ds
    mov %eax, %es
    mov %eax, %ss
    xor %eax, %eax
    mov %eax, %fs
    mov %eax, %gs
    mov $boot_stack_top, %rsp
    # The task state segment's descriptor; its only use here is the stack for entries from ring 3.
    lea tss(%rip), %rax
    mov %ax, gdt + TSS + 2(%rip)
    shr $16, %rax
    mov %al, gdt + TSS + 4(%rip)
    mov %ah, gdt + TSS + 7(%rip)
    mov $TSS, %eax
    ltr %ax
    # A gate for each exception: says what happened and gives up.
    xor %edi, %edi
    lea exceptions(%rip), %rsi
1:  call set_gate
    add $16, %rsi
    inc %edi
    cmp $32, %edi
    jb 1b
    lidt idt_pointer(%rip)
    call main
stop:
    cli
1:  hlt
    jmp 1b

# Gate %edi goes to %rsi, reachable from ring 0 only.
set_gate:
    mov $0x8e00, %eax
    jmp 1f
# The same, reachable from ring 3 by `int`.
set_user_gate:
    mov $0xee00, %eax
1:  push %rdx
    push %rsi
    mov %edi, %edx
    shl $4, %rdx
    lea idt(%rip), %r11
    add %r11, %rdx
    mov %si, (%rdx)
    movw $CODE0, 2(%rdx)
    mov %ax, 4(%rdx)
    shr $16, %rsi
    mov %si, 6(%rdx)
    shr $16, %rsi
    mov %esi, 8(%rdx)
    movl $0, 12(%rdx)
    pop %rsi
    pop %rdx
    ret

    .set vector, 0
    .align 16
exceptions:
    .rept 32
    .align 16
    # These bring an error code of their own: 8, 10 to 14, 17, 21, 29, 30.
    .if (vector != 8) && ((vector < 10) || (vector > 14)) && (vector != 17) && (vector != 21) && (vector < 29 || vector > 30)
    push $0
    .endif
    push $vector
    jmp exception
    .set vector, vector + 1
    .endr

# On the stack: vector, error code, rip, …
exception:
    lea text_exception(%rip), %rsi
    call puts
    mov (%rsp), %rax
    call putfield
    mov 8(%rsp), %rax
    call putfield
    mov 16(%rsp), %rax
    call putfield
    mov %cr2, %rax
    call puthex
    mov $'\n', %al
    call putc
    jmp stop

# Says "FAIL <text at rsi> <rax>" and stops.
fail:
    push %rax
    push %rsi
    lea text_fail(%rip), %rsi
    call puts
    pop %rsi
    call puts
    mov $' ', %al
    call putc
    pop %rax
    call puthex
    mov $'\n', %al
    call putc
    jmp stop

# Gives up with a text; rax is told with it.
    .macro FAIL text
    .section .rodata
99: .asciz "\text"
    .text
    lea 99b(%rip), %rsi
    jmp fail
    .endm

    .macro SAY text
    .section .rodata
99: .asciz "\text"
    .text
    lea 99b(%rip), %rsi
    call puts
    .endm

# The character %al.
putc:
    push %rdx
    push %rax
    mov $LINE_STATUS, %dx
1:  in %dx, %al
    test $0x20, %al             # transmitter empty
    jz 1b
    pop %rax
    mov $SERIAL, %dx
    out %al, %dx
    pop %rdx
    ret

# The text at %rsi, which moves to its end.
puts:
    lodsb
    test %al, %al
    jz 1f
    call putc
    jmp puts
1:  ret

# %rax as 16 digits.
puthex:
    push %rbx
    push %rcx
    mov %rax, %rbx
    mov $16, %ecx
1:  rol $4, %rbx
    mov %bl, %al
    and $15, %al
    add $'0', %al
    cmp $'9', %al
    jbe 2f
    add $('a' - '9' - 1), %al
2:  call putc
    dec %ecx
    jnz 1b
    pop %rcx
    pop %rbx
    ret

# %rax, then a space.
putfield:
    call puthex
    mov $' ', %al
    jmp putc

# %rax, then a newline.
putline:
    call puthex
    mov $'\n', %al
    jmp putc

# If a character has come: it in %al and ZF clear.
trygetc:
    push %rdx
    mov $LINE_STATUS, %dx
    in %dx, %al
    test $1, %al
    jz 1f
    mov $SERIAL, %dx
    in %dx, %al
    or $1, %dl                  # clears ZF
1:  pop %rdx
    ret

# Waits for a character: %al.
getc:
    call trygetc
    jz getc
    ret

# Runs the code at %rsi in ring 3, on a stack of its own, until it does `int $0x80`. Interrupts are off meanwhile. rax, rcx
# and r11 change; all else is what the code makes of it.
call_user:
    push %rbp
    push %rbx
    mov %rsp, kernel_stack(%rip)
    lea interrupt_stack_top(%rip), %rax
    mov %rax, tss + 4(%rip)
    push $DATA3
    lea user_stack_top(%rip), %rax
    push %rax
    push $2
    push $CODE3
    push %rsi
    iretq
# The gate of `int $0x80`; set it with set_user_gate.
user_done:
    mov kernel_stack(%rip), %rsp
    pop %rbx
    pop %rbp
    ret

    .section .rodata
text_exception: .asciz "\nEXCEPTION "
text_fail: .asciz "\nFAIL "

    .data
    .align 16
gdt:
    .quad 0
    .quad 0x00af9b000000ffff    # ring 0, 64-bit code
    .quad 0x00cf93000000ffff    # ring 0, data
    .quad 0x00affb000000ffff    # ring 3, 64-bit code
    .quad 0x00cff3000000ffff    # ring 3, data
    .quad 0x0000890000000067    # task state
    .quad 0
    .quad 0x00cf9b000000ffff    # ring 0, 32-bit code
gdt_end:
gdt_pointer:
    .word gdt_end - gdt - 1
    .quad gdt
    .align 16
idt_pointer:
    .word 4095
    .quad idt
start_info: .long 0             # where PVH put its data

    .align 4096
pml4:
    .quad pdpt + 7
    .fill 511, 8, 0
pdpt:
    .quad page_directories + 7
    .quad page_directories + 0x1007
    .quad page_directories + 0x2007
    .quad page_directories + 0x3007
    .fill 508, 8, 0
page_directories:
    .set page, 0
    .rept 2048
    .quad page + 0x87           # 2 MiB, present, writable, for ring 3 too
    .set page, page + 0x200000
    .endr

    .bss
    .align 4096
idt: .skip 4096
tss: .skip 128
kernel_stack: .skip 8
    .align 16
boot_stack: .skip 8192
boot_stack_top:
interrupt_stack: .skip 4096
interrupt_stack_top:
user_stack: .skip 4096
user_stack_top:

    .text
