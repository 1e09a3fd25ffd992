-- What an error lacks that lighttpd answers itself; one of the application's has its own headers.
local status = lighty.r.req_item.http_status
local header = lighty.r.resp_header
if status < 400 then return 0 end
-- A file that is not there: the headers of those that are there say for how long to keep it.
local path = lighty.r.req_attr["uri.path"]
for _, files in ipairs({ "{{ static_url }}"{{ ', "%s"' % media_url if media_url }} }) do
    if path:find(files, 1, true) == 1 then header["Cache-Control"] = "no-store" end
end
{% for name, value in static_headers.items() %}
if not header["{{ name }}"] then header["{{ name }}"] = "{{ value }}" end
{% endfor %}
if status < 502 or status > 504 or header["Retry-After"] then return 0 end
-- The application server does not answer.
header["Retry-After"] = "{{ retry_after_s }}"
header["Cache-Control"] = "no-store"
{% for name, value in page_headers.items() %}
header["{{ name }}"] = "{{ value }}"
{% endfor %}
return 0
