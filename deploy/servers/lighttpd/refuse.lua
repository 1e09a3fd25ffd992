-- A request for a host that is not ours.
return 400
