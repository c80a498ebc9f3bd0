# Least RTT, delivery rate and resent share of each connection that `ss -tinHO` lists.
function after(name) { match($0, name "[0-9.]+"); return substr($0, RSTART + length(name), RLENGTH - length(name)) }
!/app_limited/ {
    resent = 100 * after("bytes_retrans:") / after("bytes_sent:")
    printf "%s %s ms %s Mbit/s %.2f %% resent\n", $4, after("minrtt:"), after("delivery_rate ") / 1e6, resent
}
