# Says hello and halts. The smallest kernel that boots, and the one that tests damage.
    .include "guest.s"

main:
    SAY "hello\n"
    ret
