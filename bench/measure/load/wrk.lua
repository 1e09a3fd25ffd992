-- Requests the paths of a file in turn and prints the figures as one line of JSON.
-- wrk -s wrk.lua URL -- FILE [close]; the environment says how many threads, connections and seconds there are.

local ffi = require("ffi")
ffi.cdef [[
typedef struct { long seconds; long nanoseconds; } moment;
int clock_gettime(int clock, moment *now);
]]

local CLOCK_MONOTONIC = 1
local instant = ffi.new("moment")

local function now()
   ffi.C.clock_gettime(CLOCK_MONOTONIC, instant)
   return tonumber(instant.seconds) + tonumber(instant.nanoseconds) / 1e9
end

local threads = {}
local requests = {}
local position = 0
local seconds = tonumber(os.getenv("BENCH_SECONDS")) or 1
local began = nil
-- Of each thread; wrk lets the end read only globals.
sent1, sent2, sent3 = 0, 0, 0

-- Threads begin at different places of the list, so that they do not request the same page at the same time.
function setup(thread)
   thread:set("number", #threads)
   thread:set("together", tonumber(os.getenv("BENCH_THREADS")) or 1)
   threads[#threads + 1] = thread
end

-- Every request is built once, here: the load loop only picks the next string. wrk has set the Host header by now.
function init(args)
   if args[2] == "close" then wrk.headers["Connection"] = "close" end
   for path in io.lines(args[1]) do
      requests[#requests + 1] = wrk.format("GET", path)
   end
   position = math.floor(number * #requests / together)
end

function request()
   local time = now()
   began = began or time
   local since = time - began
   local third = since * 3 / seconds
   -- wrk looks every 100 ms whether the time is up: what it sends after the end is in no third.
   if third < 1 then sent1 = sent1 + 1 elseif third < 2 then sent2 = sent2 + 1 elseif third < 3 then sent3 = sent3 + 1 end
   position = position % #requests + 1
   return requests[position]
end

function done(summary, latency, rates)
   local errors = summary.errors
   local thirds = {0, 0, 0}
   for _, thread in ipairs(threads) do
      for third = 1, 3 do thirds[third] = thirds[third] + (thread:get("sent" .. third) or 0) end
   end
   local fields = {
      string.format('"duration_us": %d', summary.duration),
      string.format('"requests": %d', summary.requests),
      string.format('"bytes": %d', summary.bytes),
      string.format('"connect": %d', errors.connect),
      string.format('"read": %d', errors.read),
      string.format('"write": %d', errors.write),
      string.format('"status": %d', errors.status),
      string.format('"timeout": %d', errors.timeout),
      string.format('"thirds": [%d, %d, %d]', thirds[1], thirds[2], thirds[3]),
   }
   if summary.requests > 0 then
      fields[#fields + 1] = string.format('"max_ms": %.3f', latency.max / 1000)
   end
   io.write("{" .. table.concat(fields, ", ") .. "}\n")
end
