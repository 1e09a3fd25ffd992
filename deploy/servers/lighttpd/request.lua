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
