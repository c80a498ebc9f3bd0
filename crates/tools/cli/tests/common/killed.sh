# steps COMMAND...: runs it, and prints each of its calls that others can see, as "NAME NUMBER": the number is the
# call's among those of its name. What a process has open only for itself, such as maps and programs without a
# pin, ends with it.
# killed NAME NUMBER COMMAND...: runs it until that call, which does not happen any more.
CALLS=bpf,mkdir,rmdir,unlink,rename,write
VISIBLE="BPF_OBJ_PIN|BPF_LINK_(CREATE|UPDATE|DETACH)"
steps() {
    strace -f -qq -o calls -e trace=$CALLS "$@" > /dev/null 2> errors || { cat errors; return 1; }
    awk -v visible="$VISIBLE" '{
        match($0, /[a-z]+\(/)
        name = substr($0, RSTART, RLENGTH - 1)
        number[name]++
        if (name != "bpf" || $0 ~ visible) print name, number[name]
    }' calls
}
killed() {
    call=$1 number=$2
    shift 2
    status=0
    strace -f -qq -o calls -e trace=$call -e "inject=$call:signal=KILL:when=$number" "$@" > /dev/null 2>&1 || status=$?
    [ $status = 137 ] || { echo "it is not killed at $call $number: status $status"; exit 9; }
}
