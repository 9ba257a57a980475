//! Where the verdict goes.
use super::args::GateArgs;
use anyhow::Result;
use holdup_gate::judge::Sides;
use holdup_gate::self_test::SelfTest;
use holdup_gate::verdict::Verdict;

pub(super) struct Sinks;

impl Sinks {
    pub(super) fn open(_args: &GateArgs) -> Result<Sinks> {
        Ok(Sinks)
    }
    pub(super) fn verdict(self, _args: &GateArgs, v: Verdict, _s: Sides<'_>) -> Result<()> {
        println!("{:?} {:?}", v.outcome, v.primary.finding);
        println!("{:#?}", v.primary.compared);
        for w in &v.why {
            println!("{} {:?} {:?} {:?}", w.row.metric, w.row.a, w.row.b, w.people);
        }
        println!("{:?}", v.problems);
        for j in &v.inform {
            println!("{} {:?}", j.limit.metric, j.finding);
        }
        Ok(())
    }
    pub(super) fn self_test(self, t: SelfTest) -> Result<()> {
        println!("{:?} {:?} {:?} {:?}", t.unchanged.outcome, t.slowed.outcome, t.curve, t.sees);
        Ok(())
    }
}
