# The client is who the connection comes from.
set req.http.X-Real-IP = client.ip;
set req.http.X-Forwarded-For = client.ip;
set req.http.X-Forwarded-Proto = "http";
