{% extends "request.lua" %}
{% block page %}
-- --- Layer staticgenerator ---
-- Answer with the stored page of this request, if there is one: to a plain GET or HEAD by an anonymous client, without
-- a query string, the path in its one spelling, and not where plain HTTP is redirected. All else goes on to the
-- application.
local request = lighty.r.req_attr
local header = lighty.r.req_header

local method = request["request.method"]
if method ~= "GET" and method ~= "HEAD" then return 0 end
if request["uri.scheme"] ~= "{{ scheme }}" then return 0 end

local path = request["request.uri"]
-- A file has the name of its page, percent-encoded (benchapp/caching/names.py): another spelling finds none.
if not path:match("^/[%w_.~@%%/-]*$") or path:find("//", 1, true) or path:find("/.", 1, true) then return 0 end
local file_name = path:sub(-1) == "/" and "index.html" or "/.page"

local cookie = header["Cookie"]
if cookie and cookie:find("{{ session_cookie }}", 1, true) then return 0 end
-- A request with Authorization, with a type of a body, or of a script (htmx, XMLHttpRequest, CORS) gets no stored page.
for _, name in ipairs({ "Authorization", "HX-Request", "X-Requested-With", "Origin", "Content-Type" }) do
    if header[name] then return 0 end
end

-- Read whole: the file may be purged at any moment.
local file = io.open("{{ store }}/pages" .. path .. file_name, "rb")
if not file then return 0 end
local page = file:read("*a")
file:close()
if not page then return 0 end

local answer = lighty.r.resp_header
answer["Content-Type"] = "text/html; charset=utf-8"
-- The headers that the application sends with it (both are in deploy/values).
{% for name, value in page_headers.items() %}
answer["{{ name }}"] = "{{ value }}"
{% endfor %}
lighty.r.resp_body.set({ page })
return 200
{% endblock %}
