-- What ingress-nginx uses of resty.chash, which Debian does not have: a key has one node.
local roundrobin = require("resty.roundrobin")

local _M = setmetatable({}, { __index = roundrobin })
_M.__index = _M

function _M.new(_, nodes)
  local o = setmetatable({}, _M)
  o:reinit(nodes)
  return o
end

function _M:find(key)
  if #self.ids == 0 then
    return nil
  end
  return self.ids[ngx.crc32_long(tostring(key)) % #self.ids + 1]
end

return _M
