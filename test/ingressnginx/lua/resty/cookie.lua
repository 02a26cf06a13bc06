-- What ingress-nginx uses of resty.cookie, which Debian does not have.
local _M = {}
_M.__index = _M

function _M.new()
  return setmetatable({}, _M)
end

function _M.get(_, key)
  return ngx.var["cookie_" .. key]
end

-- The attributes are in the order and the form in which resty.cookie writes them.
function _M.set(_, c)
  local s = c.key .. "=" .. c.value
    .. (c.expires and "; Expires=" .. c.expires or "")
    .. (c.max_age and "; Max-Age=" .. c.max_age or "")
    .. (c.domain and "; Domain=" .. c.domain or "")
    .. (c.path and "; Path=" .. c.path or "")
    .. (c.secure and "; Secure" or "")
    .. (c.httponly and "; HttpOnly" or "")
    .. (c.samesite and "; SameSite=" .. c.samesite or "")
    .. (c.extension and "; " .. c.extension or "")
  local set = ngx.header["Set-Cookie"]
  if type(set) == "table" then
    set[#set + 1] = s
  elseif set then
    set = { set, s }
  else
    set = s
  end
  ngx.header["Set-Cookie"] = set
  return true
end

return _M
