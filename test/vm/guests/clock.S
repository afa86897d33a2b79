# Reads KVM's clock (Documentation/virt/kvm/x86/msr.rst, MSR_KVM_SYSTEM_TIME_NEW and MSR_KVM_WALL_CLOCK_NEW) and the TSC all
# the time; neither may ever go back. At each character that comes, a line: nanoseconds since boot, seconds and nanoseconds
# of the wall clock at boot, TSC, all as the guest sees them.
    .include "guest.s"

main:
    mov $0x4b564d01, %ecx
    lea time(%rip), %rax
    or $1, %eax
    xor %edx, %edx
    wrmsr
    SAY "reading\n"
again:
    mov $200, %ebx
1:  call read_clock
    cmp last(%rip), %rax
    jb clock_back
    mov %rax, last(%rip)
    dec %ebx
    jnz 1b
    call trygetc
    jz again
    mov $0x4b564d00, %ecx
    lea wall(%rip), %rax
    xor %edx, %edx
    wrmsr
    call read_clock
    call putfield
    mov wall + 4(%rip), %eax
    call putfield
    mov wall + 8(%rip), %eax
    call putfield
    mov last_tsc(%rip), %rax
    call putline
    jmp again
clock_back:
    FAIL "KVM's clock went back"
tsc_back:
    FAIL "the TSC went back"

# Nanoseconds in %rax. Changes rcx, rdx, rsi, rdi.
read_clock:
    mov time(%rip), %esi        # version
    test $1, %esi
    jnz read_clock
    rdtsc
    shl $32, %rdx
    or %rdx, %rax
    cmp last_tsc(%rip), %rax
    jb tsc_back
    mov %rax, last_tsc(%rip)
    sub time + 8(%rip), %rax    # tsc_timestamp
    movsbl time + 28(%rip), %ecx
    test %ecx, %ecx
    js 1f
    shl %cl, %rax
    jmp 2f
1:  neg %ecx
    shr %cl, %rax
2:  mov time + 24(%rip), %edx   # tsc_to_system_mul
    mul %rdx
    shrd $32, %rdx, %rax
    add time + 16(%rip), %rax   # system_time
    cmp time(%rip), %esi
    jne read_clock
    ret

    .bss
    .align 64
time: .skip 64
wall: .skip 64
last: .skip 8
last_tsc: .skip 8
    .text
