{% if maintenance == "on" %}
-- Whether the file that switches the site off is there.
core.register_fetches("maintenance", function()
    local file = io.open("{{ maintenance_file }}")
    if file then file:close() end
    return file ~= nil
end)
{% endif %}
