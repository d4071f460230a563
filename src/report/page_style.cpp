#include "report/page_assets.h"

namespace fdbench::report {

// Series colours: Okabe and Ito's palette, which colour-blind people can tell apart, darkened for a white
// ground and lightened for a dark one. Heat: one hue, even steps of lightness, the best strongest.
const std::string_view kPageStyle = R"css(
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1f24;--soft:#57606a;--edge:#d0d7de;--panel:#f6f8fa;--accent:#0550ae;
--s0:#0068a8;--s1:#c24e00;--s2:#00805c;--s3:#a8477f;--s4:#9a6700;--s5:#2b8fc9;--s6:#6b4fbb;--s7:#1b1f24;--roof:#57606a;--bad:#b3261e;
--h0:#08415c;--h1:#0b5e86;--h2:#2e7fae;--h3:#6ea8cc;--h4:#a5cbe2;--h5:#d0e4f0;--h6:#eef5fa;
--t0:#fff;--t1:#fff;--t2:#fff;--t3:#0b1a24;--t4:#0b1a24;--t5:#0b1a24;--t6:#0b1a24}
@media screen and (prefers-color-scheme:dark){:root{--bg:#0f1419;--fg:#e6edf3;--soft:#9aa7b4;--edge:#323b45;--panel:#171e26;--accent:#79b8ff;
--s0:#56b4e9;--s1:#ff8c42;--s2:#2fc99c;--s3:#e896c4;--s4:#e8b93a;--s5:#9ad1f5;--s6:#b39dff;--s7:#e6edf3;--roof:#9aa7b4;--bad:#ff7b72;
--h0:#c6e6fa;--h1:#93cbee;--h2:#62aad8;--h3:#3d85b5;--h4:#2a628a;--h5:#1e4562;--h6:#182f42;
--t0:#08141c;--t1:#08141c;--t2:#08141c;--t3:#fff;--t4:#fff;--t5:#e6edf3;--t6:#e6edf3}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:1320px;padding:16px;background:var(--bg);color:var(--fg);font:15px/1.45 system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
h1{font-size:1.5rem;margin:.2em 0}h2{font-size:1.2rem;margin:1.6em 0 .5em;border-bottom:1px solid var(--edge)}h3{font-size:1rem;margin:1.2em 0 .4em}
a{color:var(--accent)}nav a{margin-right:1em}
.note,.legend,figcaption,.rules{color:var(--soft);font-size:.87rem}.note{margin:.4em 0}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,460px),1fr));gap:14px}
figure{margin:0;padding:10px;border:1px solid var(--edge);border-radius:6px;min-width:0}
figcaption{font-weight:600;color:var(--fg);overflow-wrap:anywhere}
.scroll{overflow-x:auto}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 14px;margin:6px 0;padding:0;overflow-wrap:anywhere}
.legend svg{vertical-align:middle}.swatch{display:inline-block;width:14px;height:14px;vertical-align:-2px;border:1px solid var(--edge)}
.rules{margin:.2em 0;padding-left:1.6em}
svg.chart{display:block;width:100%;min-width:440px;max-width:780px;height:auto;font:12px system-ui,sans-serif}
svg text{fill:var(--fg)}svg .tick,svg .axis{fill:var(--soft)}svg .group{font-weight:600}
.grid-line,svg .grid{stroke:var(--edge)}svg line.grid{stroke-dasharray:2 3}svg .zero{stroke:var(--soft)}
.reference{stroke:var(--fg);stroke-dasharray:5 3}
.s0{color:var(--s0)}.s1{color:var(--s1)}.s2{color:var(--s2)}.s3{color:var(--s3)}.s4{color:var(--s4)}.s5{color:var(--s5)}.s6{color:var(--s6)}.s7{color:var(--s7)}.roof{color:var(--roof)}
.curve{fill:none;stroke:currentColor;stroke-width:2}.roof .curve{stroke-dasharray:7 4;stroke-width:2.5}
.band{fill:currentColor;opacity:.18}.whisker{stroke:currentColor;stroke-width:1.5}
.pt path,.pt circle,.legend path,.legend circle,.bar rect{fill:currentColor}.hit{fill:transparent!important;stroke:none!important}
.interval line{stroke:var(--fg);stroke-width:1.3}
.m{cursor:pointer}.m.on>:not(.hit):not(text){stroke:var(--fg);stroke-width:2.5}
.cell rect{stroke:none}.cell.none rect{fill:none;stroke:var(--bad);stroke-dasharray:3 3}.cell.tied rect{stroke:var(--s1);stroke-width:2;stroke-dasharray:4 2}
.cell.best rect{stroke:var(--s1);stroke-width:3.5;stroke-dasharray:none}.cell.best text{font-weight:700}
.h0 rect,.swatch.h0{fill:var(--h0);background:var(--h0)}.h0 text{fill:var(--t0)}.h1 rect,.swatch.h1{fill:var(--h1);background:var(--h1)}.h1 text{fill:var(--t1)}
.h2 rect,.swatch.h2{fill:var(--h2);background:var(--h2)}.h2 text{fill:var(--t2)}.h3 rect,.swatch.h3{fill:var(--h3);background:var(--h3)}.h3 text{fill:var(--t3)}
.h4 rect,.swatch.h4{fill:var(--h4);background:var(--h4)}.h4 text{fill:var(--t4)}.h5 rect,.swatch.h5{fill:var(--h5);background:var(--h5)}.h5 text{fill:var(--t5)}
.h6 rect,.swatch.h6{fill:var(--h6);background:var(--h6)}.h6 text{fill:var(--t6)}
.rule line{stroke:var(--soft)}.rule circle{fill:var(--panel);stroke:var(--soft)}.rule text{font-size:11px}
.smp{fill:var(--s0);opacity:.65}.smp.aside{fill:none;stroke:var(--s1);stroke-width:2;opacity:1}.hist{fill:var(--s0);opacity:.6}.mid{stroke:var(--fg);stroke-width:1.5}.ci{fill:var(--fg);opacity:.12}
table{border-collapse:collapse;font-size:.85rem;font-variant-numeric:tabular-nums}
th,td{padding:3px 8px;border-bottom:1px solid var(--edge);text-align:right;white-space:nowrap;unicode-bidi:isolate}
th[scope=row],td.l,th.l{text-align:left}td.w{white-space:normal;min-width:14em;text-align:left}
thead th{background:var(--panel);text-align:left}
#rows{max-height:80vh;overflow:auto;border:1px solid var(--edge);border-radius:6px}#rows thead th{position:sticky;top:0;z-index:1}
#rows th button{all:unset;cursor:pointer;font-weight:600}#rows th button:focus-visible{outline:2px solid var(--accent)}
th[aria-sort=ascending] button::after{content:" \25B2"}th[aria-sort=descending] button::after{content:" \25BC"}
tr.on td,tr.on th{background:color-mix(in srgb,var(--accent) 22%,transparent)}tr.bad td.st{color:var(--bad);font-weight:600}
.tools{display:flex;flex-wrap:wrap;gap:8px;align-items:center;margin:8px 0}.tools input,.tools select,.tools button,#pick{font:inherit;padding:5px 9px;color:inherit;background:var(--panel);border:1px solid var(--edge);border-radius:5px;max-width:100%}
.tools input{flex:1 1 220px}
:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
#tip{position:fixed;z-index:9;max-width:min(360px,94vw);padding:7px 10px;background:var(--fg);color:var(--bg);border-radius:5px;font-size:.82rem;white-space:pre-line;pointer-events:none;overflow-wrap:anywhere}
.facts{display:grid;grid-template-columns:max-content 1fr;gap:2px 14px;margin:0;font-size:.88rem}.facts dt{color:var(--soft)}.facts dd{margin:0;overflow-wrap:anywhere}
.warn{border-left:4px solid var(--s1);padding:2px 10px;margin:6px 0}
@media(max-width:560px){body{padding:8px;font-size:14px}figure{padding:6px}.facts{grid-template-columns:1fr}.facts dt{margin-top:4px}}
@media print{body{max-width:none;padding:0;font-size:10pt}nav,.tools,#tip{display:none!important}figure,.rows-end{break-inside:avoid}
.grid{grid-template-columns:1fr 1fr}svg.chart{min-width:0!important}.scroll{overflow:visible}#rows{max-height:none;overflow:visible;border:0}#rows thead th{position:static}
#rows table{font-size:6pt}th,td{padding:1px 3px}#rows td,#rows th{white-space:normal;overflow-wrap:anywhere}td.w{min-width:0}
*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}
)css";

}  // namespace fdbench::report
