-- lighttpd makes one slash of several. The application would see another path than behind other servers: it is refused.
local path = lighty.r.req_attr["request.orig-uri"]:match("^[^?]*"):lower():gsub("%%2f", "/")
if path:find("//", 1, true) then return 400 end
{% if maintenance == "on" %}
-- While the file is there, all but the health checks is a 503.
local health = { {% for path in health_paths %}["{{ path }}"] = true{{ ", " if not loop.last }}{% endfor %} }
if not health[lighty.r.req_attr["uri.path"]] then
    local file = io.open("{{ maintenance_file }}")
    if file then
        file:close()
        return 503
    end
end
{% endif %}
{% block page %}
{% endblock %}
