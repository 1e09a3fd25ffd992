-- Requests the paths of a file in turn and prints what was measured as one line of JSON.
-- wrk -s wrk.lua URL -- FILE [close]

local threads = 0
local requests = {}
local position = 0

-- Threads begin at different places of the list, so that they do not ask for the same page at the same time.
function setup(thread)
   thread:set("number", threads)
   threads = threads + 1
   thread:set("together", tonumber(os.getenv("BENCH_THREADS")) or 1)
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
   position = position % #requests + 1
   return requests[position]
end

local function ms(us)
   if us ~= us or us == math.huge then return "null" end
   return string.format("%.3f", us / 1000)
end

function done(summary, latency, rates)
   local errors = summary.errors
   local fields = {
      string.format('"duration_us": %d', summary.duration),
      string.format('"requests": %d', summary.requests),
      string.format('"bytes": %d', summary.bytes),
      string.format('"connect": %d', errors.connect),
      string.format('"read": %d', errors.read),
      string.format('"write": %d', errors.write),
      string.format('"status": %d', errors.status),
      string.format('"timeout": %d', errors.timeout),
   }
   if summary.requests > 0 then
      fields[#fields + 1] = '"mean_ms": ' .. ms(latency.mean)
      fields[#fields + 1] = '"max_ms": ' .. ms(latency.max)
      for _, p in ipairs({50, 90, 99}) do
         fields[#fields + 1] = string.format('"p%d_ms": %s', p, ms(latency:percentile(p)))
      end
   end
   io.write("{" .. table.concat(fields, ", ") .. "}\n")
end
