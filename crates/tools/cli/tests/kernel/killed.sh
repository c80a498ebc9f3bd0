# Kills `kernel load`, `upgrade` and `unload` at each of their steps, and prints the number of steps. It needs the variable `controller`, the functions
# of common/killed.sh, kernel, registered, and connect, which prints the controller of a connection that has moved data.
call= number=
# With `options` of `load`, the default may get the name `chosen`.
options=${options-} chosen=${chosen-$controller}
failed() { echo "$command, killed at $call $number: $*"; exit 9; }
default() { cat /proc/sys/net/ipv4/tcp_congestion_control; }
copies() { grep -c '_cong_control' /proc/kallsyms || true; }
soon() { for i in $(seq 200); do "$@" && return; sleep 0.05; done; failed "not soon: $*"; }
# Where a pin and its registration are two steps (before Linux 6.4), PIN_IS_FIRST=1: the pin comes before, and goes after.
is_registered_as_pinned() {
    if [ ! -e /sys/fs/bpf/uncork/$controller ]; then
        ! registered > /dev/null
    else
        [ "$PIN_IS_FIRST" ] || registered > /dev/null
    fi
}
no_more_copies() { [ "$(copies)" -le "$before" ]; }
echo reno > /proc/sys/net/ipv4/tcp_congestion_control
before=$(copies)
loaded() { kernel load $options --default $controller > /dev/null; }
unloaded() {
    kernel unload > /dev/null 2>&1 || [ $? = 1 ]
    soon is_registered_as_pinned
    ! registered > /dev/null || failed "it is still registered"
    [ -z "$(find /sys/fs/bpf/uncork -type f 2> /dev/null)" ] || failed "a pin is left"
    echo reno > /proc/sys/net/ipv4/tcp_congestion_control
    soon no_more_copies
}
for command in load upgrade unload; do
    begin=loaded words=$command
    [ $command != load ] || begin=unloaded words="load $options --default $controller"
    $begin
    steps "$UNCORK" kernel $words > steps.txt
    unloaded
    while read -r call number; do
        $begin
        killed $call $number "$UNCORK" kernel $words
        soon is_registered_as_pinned
        got=$(connect)
        # What is the default was loaded, whole, and still is unless it was unloaded.
        [ "$got" = "$(default)" ] || failed "a connection has $got"
        [ $command != upgrade ] || [ "$got" = $chosen ] || failed "the default is $got"
        kernel $words > /dev/null 2>&1 || [ $? = 1 ] || failed "it cannot be run again"
        unloaded
    done < steps.txt
    echo $command $(wc -l < steps.txt)
done
