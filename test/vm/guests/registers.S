# Keeps a different, known value in everything that a CPU has, and looks at all of it again and again: in ring 3 the XMM
# registers (which count along with a register and with memory), the upper halves of YMM, x87 and its control words; in
# ring 0 model-specific registers, FS and GS base, debug registers, CR2 and CR8. A line for each round that was right, with
# which parts this CPU has: bit 0 AVX, bit 1 TSC_AUX, bit 2 an AVX that CPUID shows and that faults all the same (as in
# QEMU's nested AMD-V). What was not right ends it with FAIL and the name.
#
# Vector instructions are in ring 3 only: some KVMs run ring 0 through an emulator that has none.
    .include "guest.s"

    .set SPINS, 40              # of the loop in ring 3 for each round

main:
    mov $0x80, %edi
    lea user_done(%rip), %rsi
    call set_user_gate
    call find_features
    call write_msrs
    call write_debug
    xor %r12d, %r12d            # steps of the XMM registers
    xor %r13d, %r13d            # rounds
    lea user_load(%rip), %rsi
    call call_user
round:
    inc %r13
    lea user_round(%rip), %rsi
    call call_user
    test %rsi, %rsi             # what was wrong in ring 3
    jnz wrong
    call check_msrs
    call check_debug
    mov %r13, %rax
    call putfield
    mov features(%rip), %eax
    call putline
    jmp round
wrong:
    mov %r13, %rax
    jmp fail

# --- ring 3 ---

# The value of each quadword of the XMM registers, %r12 steps on.
    .set SEED, 0x0123456789abcdef

user_load:
    mov $SEED, %rax
    lea buffer(%rip), %rdi
    mov $32, %ecx
1:  mov %rax, (%rdi)
    add %rbp, %rax
    rol $7, %rax
    add $8, %rdi
    dec %ecx
    jnz 1b
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movdqu buffer + 16 * \i(%rip), %xmm\i
    .endr
    # `start` keeps what they were at first; a step adds 1 to each.
    lea buffer(%rip), %rsi
    lea start(%rip), %rdi
    mov $32, %ecx
    rep movsq
    int $0x80

user_round:
    # Upper halves, x87 and control words hold this round's number.
    fninit
    mov %r13, integer(%rip)
    fildll integer(%rip)
    mov %r13d, %eax
    and $0x0c00, %eax           # rounding, by the round
    or $0x037f, %eax
    mov %ax, x87_control(%rip)
    fldcw x87_control(%rip)
    mov %r13d, %eax
    and $3, %eax
    shl $13, %eax
    or $0x1f80, %eax
    mov %eax, mxcsr(%rip)
    ldmxcsr mxcsr(%rip)
    testb $1, features(%rip)
    jz 2f
    lea buffer(%rip), %rdi
    mov %r13, %rax
    mov $32, %ecx
1:  mov %rax, (%rdi)
    rol $3, %rax
    add $5, %rax
    add $8, %rdi
    dec %ecx
    jnz 1b
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    vinsertf128 $1, buffer + 16 * \i(%rip), %ymm\i, %ymm\i
    .endr
2:  mov $SPINS, %ebx
spin:
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    paddq ones(%rip), %xmm\i
    .endr
    inc %r12
    incq steps(%rip)
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    movdqu %xmm\i, buffer + 16 * \i(%rip)
    .endr
    cmp %r12, steps(%rip)
    lea text_steps(%rip), %rsi
    jne user_end
    xor %ecx, %ecx
    lea buffer(%rip), %rdi
    lea start(%rip), %r8
1:  mov (%rdi,%rcx,8), %rax
    sub (%r8,%rcx,8), %rax
    cmp %r12, %rax
    lea text_xmm(%rip), %rsi
    jne user_end
    inc %ecx
    cmp $32, %ecx
    jb 1b
    dec %ebx
    jnz spin

    testb $1, features(%rip)
    jz 2f
    .irp i, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
    vextractf128 $1, %ymm\i, buffer + 16 * \i(%rip)
    .endr
    lea buffer(%rip), %rdi
    mov %r13, %rax
    mov $32, %ecx
    lea text_ymm(%rip), %rsi
1:  cmp %rax, (%rdi)
    jne user_end
    rol $3, %rax
    add $5, %rax
    add $8, %rdi
    dec %ecx
    jnz 1b
2:  fnstcw word(%rip)
    mov word(%rip), %ax
    cmp x87_control(%rip), %ax
    lea text_x87_control(%rip), %rsi
    jne user_end
    fistpll integer(%rip)
    cmp %r13, integer(%rip)
    lea text_x87(%rip), %rsi
    jne user_end
    stmxcsr word(%rip)
    mov word(%rip), %eax
    cmp mxcsr(%rip), %eax
    lea text_mxcsr(%rip), %rsi
    jne user_end
    xor %esi, %esi
user_end:
    int $0x80

# --- ring 0 ---

find_features:
    mov $1, %eax
    xor %ecx, %ecx
    cpuid
    mov %ecx, %eax
    and $0x14000000, %eax       # XSAVE and AVX
    cmp $0x14000000, %eax
    jne 1f
    mov %cr4, %rax
    or $0x40000, %eax           # OSXSAVE
    mov %rax, %cr4
    xor %ecx, %ecx
    xgetbv
    or $7, %eax                 # x87, SSE, AVX
    xsetbv
    orl $1, features(%rip)
    mov $6, %edi
    lea no_avx(%rip), %rsi
    call set_gate
1:  mov $0x80000001, %eax
    cpuid
    test $0x8000000, %edx       # RDTSCP
    jz 2f
    orl $2, features(%rip)
    mov $0xc0000103, %ecx
    mov $0x5a5a1234, %eax
    xor %edx, %edx
    wrmsr
2:  ret

# An invalid instruction in ring 3. In the first round it is the host that has no AVX; where it went once it must go on.
no_avx:
    mov features(%rip), %eax
    cmp $1, %r13
    jne 1f
    test $1, %al
    jz 1f
    xorl $5, features(%rip)
    xor %esi, %esi
    jmp user_done
1:  FAIL "an invalid instruction in ring 3"

    .macro EACH_MSR body
    lea msrs(%rip), %r8
1:  mov (%r8), %ecx
    test %ecx, %ecx
    jz 2f
    \body
    add $16, %r8
    jmp 1b
2:  ret
    .endm

write_msrs:
    EACH_MSR "call write_msr"
write_msr:
    mov 8(%r8), %eax
    mov 12(%r8), %edx
    wrmsr
    ret

check_msrs:
    testb $2, features(%rip)
    jz 3f
    mov $0xc0000103, %ecx
    rdmsr
    cmp $0x5a5a1234, %eax
    jne wrong_msr
3:  EACH_MSR "call check_msr"
check_msr:
    rdmsr
    cmp 8(%r8), %eax
    jne wrong_msr
    cmp 12(%r8), %edx
    jne wrong_msr
    ret
wrong_msr:
    mov %ecx, %eax
    FAIL "this MSR is not what was written"

write_debug:
    mov $0x7f1122334000, %rax
    mov %rax, %dr0
    mov $0x7f1122335008, %rax
    mov %rax, %dr1
    mov $0x7f1122336010, %rax
    mov %rax, %dr2
    mov $0x7f1122337018, %rax
    mov %rax, %dr3
    mov $0x401, %eax            # the first one armed, where nothing ever runs
    mov %rax, %dr7
    mov $0x123456789abc, %rax
    mov %rax, %cr2
    mov $5, %eax
    mov %rax, %cr8
    ret

    .macro EXPECT register, value, text
    mov \register, %rax
    mov $\value, %rdx
    cmp %rdx, %rax
    lea \text(%rip), %rsi
    jne fail
    .endm
check_debug:
    EXPECT %dr0, 0x7f1122334000, text_dr
    EXPECT %dr1, 0x7f1122335008, text_dr
    EXPECT %dr2, 0x7f1122336010, text_dr
    EXPECT %dr3, 0x7f1122337018, text_dr
    EXPECT %dr7, 0x401, text_dr
    EXPECT %cr2, 0x123456789abc, text_cr
    EXPECT %cr8, 5, text_cr
    ret

    .section .rodata
text_steps: .asciz "steps in a register and in memory"
text_xmm: .asciz "an XMM register"
text_ymm: .asciz "the upper half of a YMM register"
text_x87: .asciz "the x87 stack"
text_x87_control: .asciz "the x87 control word"
text_mxcsr: .asciz "MXCSR"
text_dr: .asciz "a debug register"
text_cr: .asciz "CR2 or CR8"
    .align 16
ones: .quad 1, 1
msrs:
    .quad 0xc0000081, 0x001b000800000000    # STAR
    .quad 0xc0000082, 0x0000000000123450    # LSTAR
    .quad 0xc0000083, 0x0000000000123460    # CSTAR
    .quad 0xc0000084, 0x0000000000047700    # SFMASK
    .quad 0xc0000100, 0x00007f0011223344    # FS base
    .quad 0xc0000101, 0x00007f0055667788    # GS base
    .quad 0xc0000102, 0x00007f0099aabbcc    # the other GS base
    .quad 0x174, 0x0000000000000010         # SYSENTER: CS
    .quad 0x175, 0x0000000000234560         # RSP
    .quad 0x176, 0x0000000000345670         # RIP
    .quad 0x277, 0x0007010600070106         # PAT: WB WT... in another order
    .quad 0, 0
    .bss
    .align 64
buffer: .skip 256
start: .skip 256
steps: .skip 8
integer: .skip 8
features: .skip 4
mxcsr: .skip 4
word: .skip 4
x87_control: .skip 4
    .text
