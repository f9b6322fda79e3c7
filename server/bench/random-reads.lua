-- GETs of customers all over the database: the ids stand in random order. They and the token come from the environment.
local ids = {}
for line in io.lines(os.getenv("BENCH_IDS")) do ids[#ids + 1] = line end
local token = os.getenv("BENCH_TOKEN")
local fields = os.getenv("BENCH_FIELDS")
local requests = {}
function init()
  if token and token ~= "" then wrk.headers["Authorization"] = "Bearer " .. token end
  -- Made beforehand: a generator that builds strings would measure itself.
  for i = 1, #ids do
    requests[i] = wrk.format("GET", "/customers/" .. ids[i] .. "?fields=" .. fields)
  end
end
-- Each run begins elsewhere.
math.randomseed(os.time())
local at = math.random(#ids)
function request()
  at = at % #requests + 1
  return requests[at]
end
