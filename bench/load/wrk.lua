-- Requests the paths of a file in turn and prints what was measured as one line of JSON.
-- wrk -s wrk.lua URL -- FILE [close]; the environment says how many threads, connections and seconds there are.

local ffi = require("ffi")
ffi.cdef [[
typedef struct { long seconds; long nanoseconds; } moment;
int clock_gettime(int clock, moment *now);
typedef struct { uint64_t count, limit, min, max, data[]; } wrk_stats;
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
local began, reported = nil, 0
-- Of each thread; wrk lets the end read globals alone.
sent1, sent2, sent3 = 0, 0, 0

-- Threads begin at different places of the list, so that they do not ask for the same page at the same time.
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
   if since >= reported + 1 then
      reported = reported + 1
      io.stderr:write(string.format("progress %.1f %d %d\n", since, sent1 + sent2 + sent3, number))
   end
   position = position % #requests + 1
   return requests[position]
end

local function ms(us)
   if us ~= us or us == math.huge then return "null" end
   return string.format("%.3f", us / 1000)
end

-- Microseconds and how many requests took them. wrk's own way to read them looks through all from the start for each.
local function histogram(latency)
   local stats = ffi.cast("wrk_stats **", latency)[0]
   if tonumber(stats.min) ~= latency.min or tonumber(stats.max) ~= latency.max then return "null" end
   local pairs_of = {}
   for us = latency.min, latency.max do
      local count = tonumber(stats.data[us])
      if count > 0 then pairs_of[#pairs_of + 1] = string.format("[%d,%d]", us, count) end
   end
   return "[" .. table.concat(pairs_of, ",") .. "]"
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
      string.format('"connections": %d', tonumber(os.getenv("BENCH_CONNECTIONS")) or 0),
      string.format('"thirds": [%d, %d, %d]', thirds[1], thirds[2], thirds[3]),
   }
   if summary.requests > 0 then
      fields[#fields + 1] = '"mean_ms": ' .. ms(latency.mean)
      fields[#fields + 1] = '"max_ms": ' .. ms(latency.max)
      for _, p in ipairs({50, 90, 99}) do
         fields[#fields + 1] = string.format('"p%d_ms": %s', p, ms(latency:percentile(p)))
      end
      fields[#fields + 1] = '"histogram": ' .. histogram(latency)
   end
   io.write("{" .. table.concat(fields, ", ") .. "}\n")
end
