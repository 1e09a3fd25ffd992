-- The headers of a failure that lighttpd answers; those of the application have their own.
local status = lighty.r.req_item.http_status
local header = lighty.r.resp_header
if status < 502 or status > 504 or header["Retry-After"] then return 0 end
header["Retry-After"] = "{{ retry_after_s }}"
header["Cache-Control"] = "no-store"
{% for name, value in page_headers.items() %}
header["{{ name }}"] = "{{ value }}"
{% endfor %}
return 0
