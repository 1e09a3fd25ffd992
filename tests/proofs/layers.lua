-- One line with exact figures; wrk itself prints rounded ones.
function done(summary, latency, requests)
    io.write(string.format("microseconds %d requests %d\n", summary.duration, summary.requests))
end
