-- A compressed file that was made ahead, in the place of the plain one, to a client that takes it.
local path = lighty.r.req_attr["physical.path"]
local plain = lighty.c.stat(path)
if not plain or not plain.is_file then return 0 end

local request, response = lighty.r.req_header, lighty.r.resp_header
local accepted = "," .. (request["Accept-Encoding"] or ""):lower():gsub("%s", "") .. ","
for _, coding in ipairs({ { name = "br", ending = ".br" }, { name = "gzip", ending = ".gz" } }) do
    local made_ahead = lighty.c.stat(path .. coding.ending)
    if made_ahead and made_ahead.is_file then
        response["Vary"] = "Accept-Encoding"
        local weight = accepted:match("," .. coding.name .. "(;?q?=?[%d.]*),")
        if weight and not weight:match("^;q=0%.?0*$") then
            response["Content-Encoding"] = coding.name
            response["Content-Type"] = plain["content-type"]
            lighty.r.req_attr["physical.path"] = path .. coding.ending
            return 0
        end
    end
end

-- mod_deflate takes `gzip;q=0`, which refuses gzip, for a client that takes it.
if accepted:find(";q=0%.?0*,") then request["Accept-Encoding"] = nil end
return 0
