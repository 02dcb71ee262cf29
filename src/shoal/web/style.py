"""The studio's style sheet: one set of colours for light, one for dark, and few shapes."""

from __future__ import annotations

CSS = """
:root { --bg:#f5f6f8; --card:#fff; --line:#dfe4e9; --edge:#7f8c99;
  --ink:#1b2632; --muted:#566472; --accent:#0d6b6b;
  --on-accent:#fff; --soft:#e2f0ef; --bad:#a8231b; --bad-soft:#fcebe9; --good:#17703c; --good-soft:#e5f4ea;
  --warn:#7d5200; --warn-soft:#fbf1dc; color-scheme: light; }
body.body--dark { --bg:#12171c; --card:#1a2129; --line:#323d48; --edge:#66747f;
  --ink:#e5eaef; --muted:#a3b0bc;
  --accent:#63c9c1; --on-accent:#08201f; --soft:#1b3536; --bad:#ffa197; --bad-soft:#41211f; --good:#86daa6;
  --good-soft:#182b26; --warn:#efc470; --warn-soft:#3a2f18; color-scheme: dark; }
body { --q-primary: var(--accent) !important; --q-negative: var(--bad) !important;
  --q-dark-page: var(--bg); background: var(--bg) !important; color: var(--ink);
  font: 14px/1.45 system-ui, "Segoe UI", Roboto, "Liberation Sans", sans-serif; }
.nicegui-content { padding: 0; gap: 0; align-items: stretch; }
h1, h2, h3, p, ul, ol { margin: 0; font-weight: inherit; }
h1, h2, h3, p, li, .told, .chip, .tile, .dial > span { overflow-wrap: anywhere; }
h2 { font-size: 15px; font-weight: 600; line-height: 1.3; letter-spacing: 0; }
h3 { font-size: 13px; font-weight: 600; line-height: 1.3; letter-spacing: 0; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
.muted { color: var(--muted); } .small { font-size: 12.5px; } .nowrap { white-space: nowrap; }
.bad { color: var(--bad); } .good { color: var(--good); } .warn { color: var(--warn); }
.num { font-variant-numeric: tabular-nums; }
.hidden-label { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }

.bar { display: flex; align-items: center; gap: 16px; padding: 8px 24px; background: var(--card);
  border-bottom: 1px solid var(--line); position: sticky; top: 0; z-index: 10; }
.bar > .line { flex-wrap: nowrap; }
.brand { font-size: 16px; font-weight: 650; letter-spacing: .01em; line-height: 1.2; }
.brand span { color: var(--accent); }
#table-name { max-width: 170px; overflow: hidden; text-overflow: ellipsis; }
.steps { display: flex; gap: 2px; margin: 0 auto; }
.step { display: flex; align-items: center; gap: 8px; padding: 7px 14px; border: 0; border-radius: 8px;
  background: none; color: var(--ink); font: inherit; font-weight: 550; cursor: pointer; }
.step:hover { background: var(--bg); }
.step[aria-current=step] { background: var(--soft); color: var(--accent); }
.step[data-usable=false] { color: var(--muted); font-weight: 450; }
.dot { display: inline-grid; place-items: center; width: 22px; height: 22px; border-radius: 50%;
  font-size: 12px; border: 1.5px solid currentColor; }
.step[data-usable=false] .dot { border-style: dashed; }
.done .dot { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }

.main { padding: 18px 24px 40px; display: flex; flex-direction: column; gap: 16px; width: 100%;
  max-width: 1760px; margin: 0 auto; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 16px;
  display: flex; flex-direction: column; gap: 12px; min-width: 0; }
.split { display: grid; gap: 16px; align-items: start; }
.data-split { grid-template-columns: minmax(0, 1fr) minmax(390px, 33%); }
.narrow { width: 100%; max-width: 880px; margin: 5vh auto 0; }
.narrow .cards { grid-template-columns: repeat(auto-fit, minmax(230px, 1fr)); }
.name { font-weight: 550; white-space: nowrap; max-width: 150px; overflow: hidden; text-overflow: ellipsis; }
.reason { max-width: 0; width: 34%; }
.reason div { overflow: hidden; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 2;
  line-clamp: 2; }
.dials-split { grid-template-columns: 330px minmax(0, 1fr); }
.halves { grid-template-columns: repeat(2, minmax(0, 1fr)); align-items: stretch; }
.dials-split .halves { grid-template-columns: minmax(0, 11fr) minmax(0, 9fr); }
.dials-split .lower { grid-template-columns: minmax(0, 2fr) minmax(0, 3fr); }
.stack { display: flex; flex-direction: column; gap: 16px; min-width: 0; }
.tight { display: flex; flex-direction: column; gap: 4px; min-width: 0; }
.line { display: flex; align-items: center; gap: 10px; flex-wrap: wrap; }
.line.top { align-items: flex-start; } .spread { justify-content: space-between; } .grow { flex: 1;
  min-width: 0; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: 12px; }
.cards.three { grid-template-columns: repeat(3, 1fr); }
.three-up { grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 10px; }
.tile { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 12px 14px; }
.tile b { display: block; font-size: 23px; font-weight: 600; line-height: 1.25; }
.offer { border: 1px solid var(--line); border-radius: 10px; padding: 12px 14px; display: flex;
  flex-direction: column; gap: 6px; background: var(--card); }
.offer .btn { margin-top: auto; align-self: flex-start; }
.told { border-radius: 8px; padding: 9px 12px; background: var(--soft); }
.told.bad { background: var(--bad-soft); } .told.warn { background: var(--warn-soft); }
.told.good { background: var(--good-soft); }
.accident { position: sticky; top: 57px; z-index: 9; border-radius: 0; padding: 9px 24px; }
.empty { text-align: center; padding: 64px 24px; align-items: center; }
.scroll { overflow: auto; max-width: 100%; position: relative; }  /* hidden labels stay in it */

.btn { font: inherit; font-weight: 550; padding: 6px 14px; border-radius: 8px; cursor: pointer;
  color: var(--ink);
  border: 1px solid var(--edge); background: var(--card); text-decoration: none; display: inline-flex;
  gap: 8px;
  align-items: center; line-height: 1.4; }
.btn:hover { border-color: var(--accent); }
.btn.primary { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
.btn.primary:hover { filter: brightness(1.08); } .btn:disabled { opacity: .5; cursor: default; }
.btn.plain { border-color: transparent; background: none; color: var(--accent); padding: 4px 8px; }
.btn.small { padding: 3px 10px; font-size: 13px; }
.btn.chosen { background: var(--soft); border-color: var(--accent); color: var(--accent); }

table.t { border-collapse: collapse; width: 100%; }
.t th { text-align: left; font-weight: 550; font-size: 12.5px; color: var(--muted); padding: 5px 10px;
  border-bottom: 1px solid var(--line); white-space: nowrap; }
.t td { padding: 4px 10px; border-bottom: 1px solid var(--line); vertical-align: middle; }
.t tr:last-child td { border-bottom: 0; } .t .r { text-align: right; font-variant-numeric: tabular-nums; }
.t tr.on td { background: var(--soft); } .t tr.out td { color: var(--muted); }
.t td.changed { color: var(--accent); } .t.fit td { white-space: nowrap;
  } .t.fit th { white-space: normal; vertical-align: bottom; }
.t.fit th, .t.fit td { padding-left: 7px; padding-right: 7px; }
.t.fit td { max-width: 200px; overflow: hidden; text-overflow: ellipsis; }

.field { display: flex; flex-direction: column; gap: 3px; min-width: 0; }
.field > span { font-size: 12.5px; color: var(--muted); }
select, input.in, textarea.in { font: inherit; color: var(--ink); background: var(--card); padding: 5px 8px;
  border: 1px solid var(--edge); border-radius: 7px; min-width: 0; width: 100%; }
textarea.in { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 12.5px; resize: vertical; }
select:hover, .in:hover { border-color: var(--muted); }
.in[aria-invalid=true] { border-color: var(--bad); }
.fault { color: var(--bad); font-size: 12.5px; } .fault:empty { display: none; }
.checks { display: grid; grid-template-columns: 1fr 1fr; gap: 6px 8px; font-size: 13px; }
.check { display: flex; gap: 8px; align-items: flex-start; cursor: pointer;
  } .check input { margin-top: 3px; }
input[type=checkbox], input[type=range] { accent-color: var(--accent); }
input[type=range] { width: 100%; margin: 4px 0; }
.dial { display: grid; grid-template-columns: 1fr auto; gap: 0 10px; align-items: baseline; }
.dial input[type=range] { grid-column: 1 / 3; }
.knob { display: grid; grid-template-columns: 146px 1fr; gap: 0 12px; align-items: start; }
.knob > input[type=range] { margin-top: 28px; }
.dial .value { font-variant-numeric: tabular-nums; color: var(--muted); font-size: 12.5px; max-width: 165px;
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
details, details * { box-sizing: border-box; }  /* the part that opens does not hand it down */
.levels { display: grid; grid-template-columns: repeat(auto-fill, minmax(110px, 1fr)); gap: 8px 10px;
  padding: 10px 0; }
.levels .field > span { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
progress { width: 220px; height: 8px; accent-color: var(--accent); }
.nicegui-echart { width: 100%; }
.q-uploader { display: none; }
.chip { display: inline-block; padding: 1px 8px; border-radius: 999px; background: var(--bg);
  border: 1px solid var(--line); font-size: 12.5px; }
.chip.mark { margin-left: 6px; padding: 0 6px; font-size: 11px; }
.chip.on { background: var(--soft); border-color: var(--accent); color: var(--accent); }
summary { cursor: pointer; color: var(--accent); font-weight: 550; }
.nicegui-error-popup { color: var(--ink); }
@media (max-width: 1700px) { .dials-split .lower.many { grid-template-columns: minmax(0, 1fr); } }
@media (max-width: 1100px) { .data-split, .dials-split, .halves { grid-template-columns: minmax(0, 1fr); } }
@media (max-width: 900px) { .bar { position: static; gap: 8px 16px; } .bar, .bar > .line { flex-wrap: wrap; }
  .bar > .grow { order: 1; flex-basis: 100%; } .bar > .line:not(.grow) { margin-left: auto; }
  .steps { flex-wrap: wrap; margin: 0; } .step { padding: 7px 10px; } .accident { top: 0; } }
"""
