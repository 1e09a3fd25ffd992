{% if redirect == "on" %}
-- The ACME challenges, files by which a certificate authority sees that the name is ours.
core.register_service("acme", "http", function(applet)
    local token = applet.path:match("^/%.well%-known/acme%-challenge/([%w_-]+)$")
    local file = token and io.open("{{ acme_webroot }}/.well-known/acme-challenge/" .. token)
    local text = file and file:read("*a")
    if file then file:close() end
    applet:set_status(text and 200 or 404)
    applet:add_header("content-type", "text/plain")
    applet:add_header("content-length", #(text or ""))
    applet:start_response()
    applet:send(text or "")
end)
{% endif %}
