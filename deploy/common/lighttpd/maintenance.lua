-- While the file is there, all but the health checks is a 503.
local path = lighty.r.req_attr["uri.path"]
if path == "/healthz" or path == "/readyz" then return 0 end
local file = io.open("{{ maintenance_file }}")
if not file then return 0 end
file:close()
return 503
