-- While the file is there, all but the health checks is a 503.
local path = lighty.r.req_attr["uri.path"]
{% for health in health_paths %}
if path == "{{ health }}" then return 0 end
{% endfor %}
local file = io.open("{{ maintenance_file }}")
if not file then return 0 end
file:close()
return 503
