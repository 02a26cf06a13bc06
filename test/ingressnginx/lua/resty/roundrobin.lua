-- What ingress-nginx uses of resty.roundrobin, which Debian does not have: nodes in turn.
local _M = {}
_M.__index = _M

function _M.new(_, nodes)
  local o = setmetatable({ at = 0 }, _M)
  o:reinit(nodes)
  return o
end

function _M:reinit(nodes)
  self.nodes, self.ids = nodes, {}
  for id in pairs(nodes) do
    self.ids[#self.ids + 1] = id
  end
  table.sort(self.ids)
end

function _M:find()
  if #self.ids == 0 then
    return nil
  end
  self.at = self.at % #self.ids + 1
  return self.ids[self.at]
end

return _M
