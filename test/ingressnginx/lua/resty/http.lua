-- ingress-nginx requires this module of OpenResty, which Debian does not have; what is asked of
-- it here needs none of it.
return { new = function() return {} end }
