//! The rules about a call, and the judgement with them.

use countersign_client::enforcer::RuleDemand;

use super::call_rule::CallRule;
use super::hook_policy::HookPolicy;
use super::judge::{JudgedPart, PolicyJudgement, certain_parts, whole_text};
use crate::agent::Agent;
use crate::event::ToolCall;
use crate::places::{NamedPath, WorkDirectories};

impl HookPolicy {
    /// The same, with the reasons. A rule about this call has it asked every time.
    pub fn explain(
        &self,
        agent: Agent,
        call: &ToolCall,
        places: &WorkDirectories,
        named: Option<&[NamedPath]>,
    ) -> (PolicyJudgement, Vec<JudgedPart>) {
        let (judgement, mut parts) = self.explain_without_rules(agent, call, places, named);
        let rules = self.rules_about(agent, call, named);
        let is_named = rules.iter().any(|rule| rule.has_matchers());
        let counts = match judgement {
            PolicyJudgement::NotAsked => is_named,
            PolicyJudgement::Asked | PolicyJudgement::AlwaysAsked => !rules.is_empty(),
            PolicyJudgement::Denied(_) => false,
        };
        if !counts {
            return (judgement, parts);
        }
        for part in &mut parts {
            part.entry = None;
        }
        for rule in rules {
            let reason = format!("a rule of the policy needs {rule}");
            parts.push(JudgedPart::of(whole_text(call), Err(reason)));
        }
        (PolicyJudgement::AlwaysAsked, parts)
    }

    /// The demands of every rule about a call that is asked.
    pub fn demands(
        &self,
        agent: Agent,
        call: &ToolCall,
        named: Option<&[NamedPath]>,
    ) -> Vec<RuleDemand> {
        let rules = self.rules_about(agent, call, named).into_iter();
        rules.map(|rule| rule.demand.clone()).collect()
    }

    fn rules_about(
        &self,
        agent: Agent,
        call: &ToolCall,
        named: Option<&[NamedPath]>,
    ) -> Vec<&CallRule> {
        let parts = certain_parts(call);
        let rules = self.rules.iter();
        rules
            .filter(|rule| rule.matches(agent, call, parts.as_deref(), named))
            .collect()
    }
}
