-- GETs of random customers. The ids and the token come from the environment.
local ids = {}
for line in io.lines(os.getenv("BENCH_IDS")) do ids[#ids + 1] = line end
local token = os.getenv("BENCH_TOKEN")
local fields = os.getenv("BENCH_FIELDS")
local requests = {}
function init()
  math.randomseed(os.time())
  if token and token ~= "" then wrk.headers["Authorization"] = "Bearer " .. token end
  -- Made beforehand: a generator that builds strings would measure itself.
  for i = 1, math.min(#ids, 20000) do
    requests[i] = wrk.format("GET", "/customers/" .. ids[math.random(#ids)] .. "?fields=" .. fields)
  end
end
local at = 0
function request()
  at = at % #requests + 1
  return requests[at]
end
