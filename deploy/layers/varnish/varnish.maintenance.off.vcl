# There is no maintenance switch.
sub in_maintenance { }
